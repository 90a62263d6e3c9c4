"""`barnabas consumer-groups` and kafka-consumer-groups.sh against one Kafka 4.3, with groups of both kinds.

Where Kafka prints in hash map order and we sort by name, lines are compared sorted. Only the first line of
stderr is compared, if it is not a stack trace.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka import Consumer
from confluent_kafka import Producer as ConfluentProducer

from barnabas.base.ids import TopicPartition
from barnabas.client import Admin, Producer
from support.kafka.broker import KafkaBroker
from support.kafka.tools import KafkaTools, kafka_tools
from support.process.processes import Ended
from support.process.tool_runs import Tools

MAIN_CLASS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
LONG = "a-topic-with-a-name-that-is-long"
ORDERS_0, ORDERS_1, TXN_0 = TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("txn", 0)
# The first record of orders; each partition has ten, three seconds apart.
BEGAN_MS = 1_700_000_000_000
JOIN_TIMEOUT_S = 30
MEMBERS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("c1", "classic-live", {}),
    ("c2", "classic-live", {}),
    ("s1", "static-live", {"group.instance.id": "instance-1"}),
    ("k1", "consumer-live", {"group.protocol": "consumer"}),
    ("k2", "consumer-live", {"group.protocol": "consumer"}),
)


@pytest.fixture(scope="module")
def tools() -> KafkaTools:
    return kafka_tools()


@pytest.fixture(scope="module")
def address(tools: KafkaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Topics with records from 2023, and groups: without members, and with, of both protocols."""
    settings = {
        "group.initial.rebalance.delay.ms": 0,
        "log.retention.ms": -1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
    }
    broker = KafkaBroker(tools, tmp_path_factory.mktemp("kafka"), settings=settings)
    broker.format()
    ended = Event()
    with broker.running() as address, ThreadPoolExecutor(len(MEMBERS)) as threads:
        try:
            asyncio.run(prepare(address))
            produce_transactions(address)
            consume_once(address, "consumer-gone", {"group.protocol": "consumer"})
            for client, group, given in MEMBERS:
                threads.submit(consume, address, client, group, given, ended)
            asyncio.run(all_stable(address, {"classic-live": 2, "static-live": 1, "consumer-live": 2}))
            yield address
        finally:
            ended.set()


async def prepare(address: str) -> None:
    async with Admin(bootstrap_servers=address) as admin, Producer(bootstrap_servers=address) as producer:
        for name, partitions in (("orders", 3), ("plain", 1), ("txn", 1), (LONG, 1)):
            await admin.create_topic(name, partitions=partitions)
        for number in range(30):
            at = BEGAN_MS + 1000 * number
            await producer.send("orders", b"v", partition=number % 3, timestamp_ms=at)
        await producer.send("plain", b"v", partition=0, timestamp_ms=BEGAN_MS)
        await producer.flush()
        await admin.alter_group_offsets("simple", {ORDERS_0: 3, ORDERS_1: 10, TopicPartition("plain", 0): 0})
        await admin.alter_group_offsets("spare", {ORDERS_0: 3, TopicPartition(LONG, 0): 0})


def produce_transactions(address: str) -> None:
    """Two records and their marker, three times: offsets 2, 5 and 8 are markers."""
    producer = ConfluentProducer({"bootstrap.servers": address, "transactional.id": "t"})
    producer.init_transactions()
    for number in range(3):
        producer.begin_transaction()
        for _ in range(2):
            producer.produce("txn", b"v", timestamp=BEGAN_MS + number * 1000)
        producer.commit_transaction()


def consumer(address: str, client: str, group: str, given: dict[str, str]) -> Consumer:
    base = {"bootstrap.servers": address, "group.id": group, "client.id": client}
    found = Consumer({**base, "auto.offset.reset": "earliest", **given})
    found.subscribe(["orders"])
    return found


def consume(address: str, client: str, group: str, given: dict[str, str], ended: Event) -> None:
    member = consumer(address, client, group, given)
    while not ended.is_set():
        member.poll(0.1)
    member.close()


def consume_once(address: str, group: str, given: dict[str, str]) -> None:
    member = consumer(address, "gone", group, given)
    deadline = time.monotonic() + JOIN_TIMEOUT_S
    while member.poll(0.1) is None:
        assert time.monotonic() < deadline
    member.close()


async def all_stable(address: str, wanted: dict[str, int]) -> None:
    deadline = time.monotonic() + JOIN_TIMEOUT_S
    async with Admin(bootstrap_servers=address) as admin:
        while True:
            assert time.monotonic() < deadline, "the groups did not become stable"
            await asyncio.sleep(0.2)
            listed = await admin.list_groups()
            if not wanted.keys() <= listed.keys():
                continue
            groups = await admin.describe_groups(wanted)
            committed = await admin.list_group_offsets_of(list(wanted))
            if all(
                each.state == "Stable"
                and len(each.members) == wanted[name]
                and all(member.assignment == (member.target or member.assignment) for member in each.members)
                and [at.offset for at in committed[name].values() if at is not None] == [10, 10, 10]
                for name, each in groups.items()
            ):
                return


@pytest.fixture(scope="module")
def both(tools: KafkaTools, address: str) -> Callable[[str], tuple[Ended, Ended]]:
    """Run Kafka's tool and ours."""
    ours = Tools(address)

    def run(line: str) -> tuple[Ended, Ended]:
        words = line.split()
        done = tools.run(MAIN_CLASS, ["--bootstrap-server", address, *words])
        return Ended(done.returncode, done.stdout, done.stderr), ours("consumer-groups", *words)

    return run


Both = Callable[[str], tuple[Ended, Ended]]


@pytest.mark.parametrize(
    "line", ["--list", "--list --state", "--list --state stable,Empty --type", "--list --type consumer"]
)
def test_groups_are_listed_as_by_kafka(both: Both, line: str) -> None:
    theirs, ours = both(line)

    assert theirs.code == ours.code == 0
    assert sorted(ours.out.splitlines()) == sorted(theirs.out.splitlines())
    assert len(ours.out.splitlines()) > 1


@pytest.mark.parametrize(
    "line",
    [
        "--describe --all-groups",
        "--describe --all-groups --offsets --verbose",
        "--describe --all-groups --members",
        "--describe --all-groups --members --verbose",
        "--describe --all-groups --state",
        "--describe --all-groups --state --verbose",
        "--describe --group simple --group consumer-live",
    ],
)
def test_groups_are_described_as_by_kafka(both: Both, line: str) -> None:
    theirs, ours = both(line)

    assert theirs.code == ours.code == 0
    assert ours.out == theirs.out
    assert ours.err == theirs.err


@pytest.mark.parametrize(
    "line",
    [
        "--describe --group nothere",
        "--describe --group simple --group nothere --state",
        "--reset-offsets --group simple --topic nowhere --to-latest --dry-run",
        "--reset-offsets --group simple --topic nowhere:1 --to-latest --dry-run",
        "--reset-offsets --group simple --topic orders:9,1,8 --to-latest --dry-run",
        "--reset-offsets --group simple --all-topics --to-datetime 2023-11-14T22:13 --dry-run",
        "--reset-offsets --group simple --all-topics --to-datetime today --dry-run",
        "--reset-offsets --group simple --all-topics --by-duration long --dry-run",
        "--reset-offsets --group simple --from-file /nowhere --dry-run",
        "--reset-offsets --group classic-live --group consumer-live --topic orders --to-latest --execute",
        "--delete --group classic-live --group nothere",
        "--delete-offsets --group nothere --topic orders",
        "--delete-offsets --group classic-live --topic orders:0 --topic plain",
        "--delete-offsets --group consumer-live --topic orders:0",
        "--delete-offsets --group simple --topic nowhere",
        "--delete-offsets --group simple --group spare --topic orders",
        "--validate-regex a[b",
        "--validate-regex a(b",
        "--validate-regex (?=a)",
        "--validate-regex a**",
        "--validate-regex a.*",
    ],
)
def test_errors_have_kafkas_messages_and_exit_with_0(both: Both, line: str) -> None:
    theirs, ours = both(line)

    assert theirs.code == ours.code == 0
    assert sorted(ours.out.splitlines()) == sorted(theirs.out.splitlines())


@pytest.mark.parametrize(
    "line",
    [
        "--describe --group a --members --offsets",
        "--describe --group a --state x",
        "--describe --group a --all-groups",
        "--describe --group a --topic b",
        "--list --group a",
        "--delete --group a --topic b",
        "--reset-offsets --dry-run --execute",
        "--reset-offsets --group a --topic b --to-latest --to-earliest",
        "--reset-offsets --group simple --to-latest --dry-run",
        "--reset-offsets --group simple --topic orders:x --to-latest --dry-run",
        "--reset-offsets --group simple --topic orders:0:1 --to-latest --dry-run",
        "--reset-offsets --group simple --topic orders:2 --shift-by 1 --dry-run",
        "--group a",
        "--list --describe --group a",
    ],
)
def test_misuse_has_kafkas_messages_and_exits_with_1(both: Both, line: str) -> None:
    theirs, ours = both(line)

    assert ours[:2] == theirs[:2] == (1, "")
    assert ours.err.splitlines()[0] == theirs.err.splitlines()[0]


@pytest.mark.parametrize(
    "strategy",
    [
        "--topic orders --to-earliest",
        "--topic orders --to-latest",
        "--topic orders --to-current",
        "--topic orders:0,1 --shift-by -2",
        "--topic orders:0 --shift-by 99",
        "--topic orders --topic plain:0 --to-offset 4",
        "--topic orders --to-datetime 2023-11-14T22:13:30.000",
        "--topic orders --to-datetime 2023-11-15T03:43:20.500+05:30",
        "--topic orders --to-datetime 2023-11-15T03:13:20.5+0530",
        "--topic orders --by-duration P3650D",
        "--topic plain --by-duration PT1.5S",
        "--all-topics --to-earliest",
    ],
)
def test_every_reset_strategy_finds_the_same_offsets(both: Both, strategy: str) -> None:
    for line in ("--dry-run", "--dry-run --export"):
        theirs, ours = both(f"--reset-offsets --group simple {strategy} {line}")

        assert ours.code == theirs.code == 0
        assert sorted(ours.out.splitlines()) == sorted(theirs.out.splitlines())
        assert any(text.startswith(("simple", "orders", "plain")) for text in ours.out.splitlines())


def test_several_groups_are_exported_with_their_names(both: Both) -> None:
    theirs, ours = both(f"--reset-offsets --group simple --group spare --topic {LONG} --to-latest --export")

    assert sorted(ours.out.splitlines()) == sorted(theirs.out.splitlines())
    assert f'simple,"{LONG}",0,0' in ours.out


def test_an_export_of_one_tool_is_imported_by_the_other(
    tools: KafkaTools, address: str, tmp_path: Path
) -> None:
    tool, file = Tools(address), tmp_path / "plan.csv"
    reset = ("--reset-offsets", "--group", "carried")
    theirs = tools.run(
        MAIN_CLASS,
        ["--bootstrap-server", address, *reset, "--topic", "orders", "--to-offset", "4", "--export"],
    )
    file.write_text(theirs.stdout)

    set_by_us = tool("consumer-groups", *reset, "--from-file", str(file), "--execute")
    described = tools.run(MAIN_CLASS, ["--bootstrap-server", address, "--describe", "--group", "carried"])
    deleted = tool("consumer-groups", "--delete-offsets", "--group", "carried", "--topic", "orders:0,1")
    listed = tool("consumer-groups", "--describe", "--group", "carried", "--json")
    gone = tool("consumer-groups", "--delete", "--group", "carried")
    missing = tool("consumer-groups", "--describe", "--group", "carried")

    assert [line.split() for line in set_by_us.out.splitlines()[2:]] == [
        ["carried", "orders", str(number), "4"] for number in range(3)
    ]
    assert [line.split()[3:6] for line in described.stdout.splitlines()[2:]] == [["4", "10", "6"]] * 3
    assert deleted.out.splitlines()[0] == "Request succeeded for deleting offsets from group carried."
    [group] = json.loads(listed.out)["groups"]
    assert [(row["topic"], row["partition"], row["lag"]) for row in group["partitions"]] == [("orders", 2, 6)]
    assert gone.out == "Deletion of requested consumer groups ('carried') was successful.\n"
    assert "Group carried not found." in missing.out


def test_lag_seconds_is_the_age_of_the_first_unread_record(address: str) -> None:
    asyncio.run(committed(address, "late", {ORDERS_0: 3, ORDERS_1: 10, TXN_0: 2}))
    before = time.time()

    ended = Tools(address)("consumer-groups", "--describe", "--group", "late", "--json")

    after = time.time()
    [group] = json.loads(ended.out)["groups"]
    ages = {(row["topic"], row["partition"]): row["lagSeconds"] for row in group["partitions"]}
    for place, at_ms in ((("orders", 0), BEGAN_MS + 9000), (("txn", 0), BEGAN_MS + 1000)):
        assert before - at_ms / 1000 - 0.002 <= ages[place] <= after - at_ms / 1000 + 0.002
    assert ages["orders", 1] == 0


def test_a_group_behind_a_marker_only_has_no_lag_seconds(address: str) -> None:
    asyncio.run(committed(address, "marked", {TXN_0: 8}))

    table = Tools(address)("consumer-groups", "--describe", "--group", "marked", "--lag-seconds")

    assert table.out.splitlines()[2].split()[:7] == ["marked", "txn", "0", "8", "9", "1", "0.000"]


async def committed(address: str, group: str, offsets: dict[TopicPartition, int]) -> None:
    async with Admin(bootstrap_servers=address) as admin:
        await admin.alter_group_offsets(group, offsets)


def test_members_are_removed_from_a_group(address: str) -> None:
    """Removed members rejoin: a static one with the same instance id and another member id."""

    async def put_out() -> tuple[str, str]:
        async with Admin(bootstrap_servers=address) as admin:
            before = (await admin.describe_group("static-live")).members[0]
            await admin.remove_group_members("static-live", instances=["instance-1"], reason="a test")
        await all_stable(address, {"static-live": 1})
        async with Admin(bootstrap_servers=address) as admin:
            return before.id, (await admin.describe_group("static-live")).members[0].id

    before, after = asyncio.run(put_out())

    assert before != after
