"""`barnabas consumer-groups` against our broker, with consumers of librdkafka in the groups."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from barnabas.base.ids import TopicPartition
from barnabas.client import Admin, Producer
from support.process.our_broker import OurBroker
from support.process.processes import Ended
from support.process.tool_runs import Tools, run_tool

ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
AGED_S = 3600
JOIN_TIMEOUT_S = 20
HEADS = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
OWNER_HEADS = ["CONSUMER-ID", "HOST", "CLIENT-ID"]


@pytest.fixture(scope="module")
def began_ms() -> int:
    return int(time.time() - AGED_S) * 1000


@pytest.fixture(scope="module")
def groups(broker: OurBroker, began_ms: int) -> Tools:
    """Two partitions with ten records each, a second apart."""

    async def prepare() -> None:
        servers = {"bootstrap_servers": broker.address}
        async with Admin(**servers) as admin, Producer(**servers) as producer:
            await admin.create_topic("orders", partitions=2)
            for number in range(20):
                at = began_ms + 1000 * (number // 2)
                await producer.send("orders", b"v", partition=number % 2, timestamp_ms=at)
            await producer.flush()

    asyncio.run(prepare())
    return Tools(broker.address)


@pytest.fixture
def billing(groups: Tools) -> Iterator[Tools]:
    """The group `billing`, with committed offsets 3 and 10; restored after the test."""
    set_offsets(groups.address, "billing", {ORDERS_0: 3, ORDERS_1: 10})
    yield groups
    groups("consumer-groups", "--delete", "--group", "billing")


def set_offsets(address: str, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    async def run() -> None:
        async with Admin(bootstrap_servers=address) as admin:
            await admin.alter_group_offsets(group, offsets)

    asyncio.run(run())


def offsets_of(address: str, group: str) -> dict[TopicPartition, int]:
    async def run() -> dict[TopicPartition, int]:
        async with Admin(bootstrap_servers=address) as admin:
            found = await admin.list_group_offsets(group)
        return {tp: each.offset for tp, each in sorted(found.items()) if each is not None}

    return asyncio.run(run())


@contextmanager
def joined(address: str, group: str, **given: str) -> Iterator[Consumer]:
    """A member of a group, with assigned partitions."""
    settings = {"bootstrap.servers": address, "group.id": group, "client.id": "reader"}
    member = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False, **given})
    member.subscribe(["orders"])
    deadline = time.monotonic() + JOIN_TIMEOUT_S
    while not member.assignment():
        assert time.monotonic() < deadline, "nothing was assigned"
        member.poll(0.1)
    try:
        yield member
    finally:
        member.close()


def until(ask: Callable[[], Any], wanted: Callable[[Any], bool]) -> Any:
    deadline = time.monotonic() + JOIN_TIMEOUT_S
    while not wanted(found := ask()):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return found


# List and describe


def test_groups_are_listed_with_type_and_state(billing: Tools) -> None:
    plain = billing("consumer-groups", "--list")
    full = billing("consumer-groups", "--list", "--state", "--type")
    none = billing("consumer-groups", "--list", "--state", "stable")

    assert (plain.code, plain.err) == (0, "")
    assert "billing" in plain.out.splitlines()
    heads, *rows = (line.split() for line in full.out.splitlines())
    assert heads == ["GROUP", "TYPE", "STATE"]
    assert ["billing", "Classic", "Empty"] in rows
    assert "billing" not in none.out


def test_a_group_without_members_has_offsets_and_dashes(billing: Tools) -> None:
    ended = billing("consumer-groups", "--describe", "--group", "billing")

    blank, heads, *rows = ended.out.splitlines()
    assert (ended.code, blank, heads.split()) == (0, "", HEADS + OWNER_HEADS)
    assert [line.split() for line in rows] == [
        ["billing", "orders", "0", "3", "10", "7", "-", "-", "-"],
        ["billing", "orders", "1", "10", "10", "0", "-", "-", "-"],
    ]
    assert ended.err == "\nConsumer group 'billing' has no active members.\n"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_is_shown_with_its_assignment(groups: Tools, protocol: str) -> None:
    name = f"live-{protocol}"
    with joined(groups.address, name, **{"group.protocol": protocol}):
        state = until(
            lambda: groups("consumer-groups", "--describe", "--group", name, "--state").out,
            lambda out: "Stable" in out,
        )
        members = groups("consumer-groups", "--describe", "--group", name, "--members", "--verbose")
        offsets = groups("consumer-groups", "--describe", "--group", name)
        document = groups("consumer-groups", "--describe", "--group", name, "--members", "--json")
        refused = groups("consumer-groups", "--delete", "--group", name)
        reset = groups(
            "consumer-groups", "--reset-offsets", "--group", name, "--all-topics", "--to-latest", "--execute"
        )

    assert state.splitlines()[2].split()[-2:] == ["Stable", "1"]
    assert " orders:0,1 " in members.out
    # Nothing was committed.
    assert [line.split()[2:6] for line in offsets.out.splitlines()[2:]] == [
        ["0", "-", "10", "-"],
        ["1", "-", "10", "-"],
    ]
    [group] = json.loads(document.out)["groups"]
    [member] = group["members"]
    assert (group["type"], member["clientId"], len(member["assignment"])) == (protocol.title(), "reader", 2)
    assert "GroupNotEmptyException: The group is not empty." in refused.out
    assert f"Assignments can only be reset if the group '{name}' is inactive" in reset.out


def test_a_missing_group_is_reported_as_in_kafka(groups: Tools) -> None:
    told = groups("consumer-groups", "--describe", "--group", "nothere")
    document = groups("consumer-groups", "--describe", "--group", "nothere", "--json")

    line = (
        "Error: Executing consumer group command failed due to"
        " org.apache.kafka.common.errors.GroupIdNotFoundException: Group nothere not found."
    )
    assert told == Ended(0, f"\n{line}\n", "")
    assert document == Ended(1, "", f"{line}\n")


def test_lag_in_seconds_is_the_age_of_the_first_unread_record(billing: Tools, began_ms: int) -> None:
    before = time.time()

    table = billing("consumer-groups", "--describe", "--group", "billing", "--lag-seconds")
    document = billing("consumer-groups", "--describe", "--group", "billing", "--json")

    after = time.time()
    first, second = (line.split() for line in table.out.splitlines()[2:])
    unread_at = began_ms / 1000 + 3
    assert before - unread_at - 0.002 <= float(first[6]) <= after - unread_at + 0.002
    assert (first[5], second[5], second[6]) == ("7", "0", "0.000")
    [group] = json.loads(document.out)["groups"]
    seconds = [row["lagSeconds"] for row in group["partitions"]]
    assert float(first[6]) <= seconds[0] <= after - unread_at + 0.002
    assert seconds[1] == 0


# Reset


@pytest.mark.parametrize(
    ("words", "offsets"),
    [
        ("--all-topics --to-earliest", (0, 0)),
        ("--topic orders --to-latest", (10, 10)),
        ("--topic orders --to-current", (3, 10)),
        ("--topic orders:0 --to-offset 5", (5, 10)),
        ("--topic orders --to-offset 99", (10, 10)),
        ("--all-topics --shift-by -4", (0, 6)),
    ],
)
def test_offsets_are_set_where_the_strategy_says(
    billing: Tools, words: str, offsets: tuple[int, int]
) -> None:
    reset = ("consumer-groups", "--reset-offsets", "--group", "billing", *words.split())

    dry = billing(*reset, "--dry-run")
    before = offsets_of(billing.address, "billing")
    done = billing(*reset, "--execute")

    assert dry.out == done.out
    assert tuple(before.values()) == (3, 10)
    assert tuple(offsets_of(billing.address, "billing").values()) == offsets


def test_offsets_are_set_by_time(billing: Tools, began_ms: int) -> None:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S.000", time.gmtime(began_ms / 1000 + 6))
    reset = ("consumer-groups", "--reset-offsets", "--group", "billing", "--topic", "orders:1", "--execute")

    billing(*reset, "--to-datetime", moment)
    by_moment = offsets_of(billing.address, "billing")
    billing(*reset, "--by-duration", f"PT{AGED_S + 60}S")
    by_duration = offsets_of(billing.address, "billing")
    late = billing(*reset, "--by-duration", "PT1S")

    assert (by_moment[ORDERS_1], by_duration[ORDERS_1]) == (6, 0)
    assert late.out.splitlines()[1] == (
        "Warn: Partition 1 from topic orders is empty. Falling back to latest known offset."
    )
    assert offsets_of(billing.address, "billing")[ORDERS_1] == 10


def test_an_export_can_be_imported(billing: Tools, tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    reset = ("consumer-groups", "--reset-offsets", "--group", "billing")

    file.write_text(billing(*reset, "--all-topics", "--to-current", "--export", "--dry-run").out)
    billing(*reset, "--all-topics", "--to-earliest", "--execute")
    billing(*reset, "--from-file", str(file), "--execute")

    assert file.read_text() == "orders,0,3\norders,1,10\n\n"
    assert offsets_of(billing.address, "billing") == {ORDERS_0: 3, ORDERS_1: 10}


def test_without_execute_nothing_is_set_and_a_warning_is_printed(billing: Tools) -> None:
    ended = billing(
        "consumer-groups", "--reset-offsets", "--group", "billing", "--all-topics", "--to-earliest"
    )

    assert ended.err.startswith("WARN: No action will be performed as the --execute option is missing.")
    assert offsets_of(billing.address, "billing") == {ORDERS_0: 3, ORDERS_1: 10}


def test_a_failing_group_leaves_the_others_unchanged(billing: Tools) -> None:
    """`aside` comes first and could be reset; `billing` has no offset to shift."""
    set_offsets(billing.address, "aside", {ORDERS_0: 5})
    billing("consumer-groups", "--delete-offsets", "--group", "billing", "--topic", "orders:0")
    both = ("--group", "aside", "--group", "billing", "--topic", "orders:0")

    ended = billing("consumer-groups", "--reset-offsets", *both, "--shift-by", "1", "--execute")

    assert ended.code == 1
    assert ended.err.splitlines()[0] == (
        "Cannot shift offset for partition orders-0 since there is no current committed offset"
    )
    assert offsets_of(billing.address, "aside") == {ORDERS_0: 5}
    billing("consumer-groups", "--delete", "--group", "aside")


def test_a_reset_as_json_lists_the_new_offsets(billing: Tools) -> None:
    reset = ("consumer-groups", "--reset-offsets", "--group", "billing", "--topic", "orders:0")

    ended = billing(*reset, "--to-offset", "4", "--execute", "--json")

    row = {"topic": "orders", "partition": 0, "newOffset": 4}
    group = {"group": "billing", "error": None, "partitions": [row]}
    assert json.loads(ended.out) == {"executed": True, "groups": [group]}


# Delete


def test_offsets_and_groups_are_deleted(billing: Tools) -> None:
    offsets = billing("consumer-groups", "--delete-offsets", "--group", "billing", "--topic", "orders:1")
    left = offsets_of(billing.address, "billing")
    groups = billing("consumer-groups", "--delete", "--group", "billing", "--group", "nothere")
    listed = billing("consumer-groups", "--list")

    assert offsets.out == (
        "Request succeeded for deleting offsets from group billing.\n\n"
        "TOPIC           PARTITION  STATUS         \n"
        "orders          1          Successful     \n"
    )
    assert left == {ORDERS_0: 3}
    assert groups.out == (
        "\nError: Deletion of some consumer groups failed:\n"
        "* Group 'nothere' could not be deleted due to:"
        " org.apache.kafka.common.errors.GroupIdNotFoundException: The group id does not exist.\n"
        "\nThese consumer groups were deleted successfully: 'billing'\n"
    )
    assert "billing" not in listed.out.splitlines()


def test_offsets_of_a_subscribed_topic_are_not_deleted(groups: Tools) -> None:
    with joined(groups.address, "reading") as member:
        member.commit(offsets=None, asynchronous=False) if member.poll(5) else None
        ended = groups("consumer-groups", "--delete-offsets", "--group", "reading", "--topic", "orders:0")
        document = groups(
            "consumer-groups", "--delete-offsets", "--group", "reading", "--topic", "orders:0", "--json"
        )

    assert "Error: Encountered some partition-level error, see the follow-up details." in ended.out
    assert "GroupSubscribedToTopicException" in ended.out
    assert document.code == 1
    assert json.loads(document.out)["partitions"][0]["error"] == "GROUP_SUBSCRIBED_TO_TOPIC"


# Unreachable broker


def test_an_unreachable_broker_is_exit_code_1(tmp_path: Path) -> None:
    file = tmp_path / "quick.properties"
    file.write_text("default.api.timeout.ms=300\nrequest.timeout.ms=200\n")

    ended = run_tool(
        "consumer-groups", "--bootstrap-server", "127.0.0.1:1", "--command-config", str(file), "--list"
    )

    assert ended.code == 1
    assert ended.out.startswith("\nError: Executing consumer group command failed due to no broker at")
