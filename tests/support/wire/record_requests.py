"""Record what real clients send: they work through the checklist, transactions and tools, behind a proxy.

python -m support.wire.record_requests [CLIENT ...]

Writes tests/fixtures/recorded-requests.jsonl and prints which versions of which APIs were recorded. Clients
that cannot run on this machine keep the requests that are in the file already. `make interop` says what each
client needs.
"""

import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.errors import BarnabasError
from barnabas.protocol.exchange import Request, decode_request
from barnabas.protocol.schema.struct import schema_of
from barnabas.server.handlers.table import APIS
from support.clients.client import Client
from support.clients.entries import CLIENTS, all_entries, stage_name
from support.clients.other_languages import OTHER_LANGUAGES
from support.clients.stage import GROUP_SETTINGS, Stage
from support.kafka.tools import _find as find_kafka_tools
from support.process.our_broker import OurBroker
from support.wire.recorded_requests import FIXTURE, Recorded, load_recorded, save_recorded
from support.wire.recording_proxy import RecordingProxy

FRAME_BYTES_MAX = 1500
PER_VERSION_MAX = 6
PER_CLIENT_MAX = 2
# With how many versions fewer than the broker has the Python clients are recorded again.
LOWERED = (1, 2, 3, 5)
SETTINGS = {
    **GROUP_SETTINGS,
    "transaction.state.log.num.partitions": 1,
    "offsets.topic.num.partitions": 1,
}
_NEW_GROUPS = "KIP-848"
_SLOW_S = 30.0
TOOLS = "kafka-tools"
_TOOL_LINES = (
    "org.apache.kafka.tools.TopicCommand --create --topic tooled --partitions 2",
    "org.apache.kafka.tools.TopicCommand --describe",
    "org.apache.kafka.tools.TopicCommand --alter --topic tooled --partitions 3",
    "org.apache.kafka.tools.VerifiableProducer --topic tooled --max-messages 5",
    "org.apache.kafka.tools.GetOffsetShell --topic tooled",
    "kafka.admin.ConfigCommand --alter --topic tooled --add-config retention.ms=100000",
    "kafka.admin.ConfigCommand --describe --entity-type brokers --all",
    "org.apache.kafka.tools.LogDirsCommand --describe",
    "org.apache.kafka.tools.ClusterTool cluster-id",
    "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "org.apache.kafka.tools.FeatureCommand describe",
    "org.apache.kafka.tools.FeatureCommand upgrade --feature transaction.version=2",
    "org.apache.kafka.tools.LeaderElectionCommand --election-type preferred --all-topic-partitions",
    "org.apache.kafka.tools.MetadataQuorumCommand describe --status",
    "org.apache.kafka.tools.MetadataQuorumCommand describe --replication",
    "org.apache.kafka.tools.TransactionsCommand list",
    "org.apache.kafka.tools.TransactionsCommand describe --transactional-id confluent-txn",
    "org.apache.kafka.tools.TransactionsCommand describe-producers --topic tooled --partition 0",
    "org.apache.kafka.tools.TransactionsCommand abort --topic tooled --partition 0 --start-offset 0",
    "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand --describe --all-groups",
    "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand --list --state",
    "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand --group tg --topic tooled"
    " --reset-offsets --to-earliest --execute",
    "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand --group tg --topic tooled --delete-offsets",
    "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand --delete --group tg",
    "org.apache.kafka.tools.TopicCommand --delete --topic tooled",
)


def main(names: Iterable[str]) -> int:
    wanted = set(names)
    clients = [client for client in (*CLIENTS, *OTHER_LANGUAGES) if not wanted or client.name in wanted]
    recorded = _chosen(_record(clients, with_tools=not wanted or TOOLS in wanted))
    done = {one.client for one in recorded}
    if FIXTURE.exists():
        recorded += [one for one in load_recorded() if one.client not in done]
    save_recorded(recorded)
    print(coverage(recorded))
    return 0


def coverage(recorded: Iterable[Recorded]) -> str:
    """Which versions of each API were recorded, and which not."""
    seen = {(one.key, one.version) for one in recorded}
    lines = []
    for row in APIS:
        found = [version for version in row.versions if (row.key, version) in seen]
        missing = [version for version in row.versions if (row.key, version) not in seen]
        lines.append(f"{row.key:3} {row.key.name:28} recorded: {found}  built: {missing}")
    lines.append(f"{len(seen)} versions of {len({key for key, _ in seen})} APIs")
    return "\n".join(lines)


# Recording


def _record(clients: list[Client], *, with_tools: bool) -> list[tuple[str, bytes]]:
    with RecordingProxy() as proxy:
        for client in clients:
            why = client.missing()
            if why is not None:
                print(f"{client.name}: {why}", file=sys.stderr)
                continue
            for lower in (0, *LOWERED) if client in CLIENTS else (0,):
                proxy.client, proxy.lower = client.name, lower
                with _behind(proxy) as broker:
                    _checklist(client, broker, is_old=lower > 0)
                    if client.name in _TRANSACTIONS:
                        _tried(f"{client.name}: transactions", _TRANSACTIONS[client.name], broker.address)
        if with_tools:
            proxy.client, proxy.lower = TOOLS, 0
            with _behind(proxy) as broker:
                _kafka_tools(broker.address)
        return list(proxy.frames)


@contextmanager
def _behind(proxy: RecordingProxy) -> Iterator[OurBroker]:
    """A broker that clients reach through the proxy only."""
    with tempfile.TemporaryDirectory() as root:
        advertised = {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}
        broker = OurBroker(Path(root), settings={**SETTINGS, **advertised})
        proxy.broker_port = broker.port
        with broker.running():
            broker.address = proxy.address
            yield broker


def _checklist(client: Client, broker: OurBroker, *, is_old: bool) -> None:
    failed_slowly = 0
    for entry in all_entries():
        if entry.own_broker or entry.why_not(client) is not None or (is_old and _NEW_GROUPS in entry.name):
            continue
        stage = Stage(broker, stage_name(entry, client)[:40])
        took_s = _tried(f"{client.name}: {entry.name}", entry.carry_out, client, stage)
        failed_slowly += took_s > _SLOW_S
        if failed_slowly > 1:
            return


def _tried(what: str, story: Callable[..., object], *arguments: Any) -> float:
    """Return how long it took. A story that fails, as some do with old versions, was recorded as well."""
    began = time.monotonic()
    try:
        story(*arguments)
    except (Exception, pytest.fail.Exception) as error:
        print(f"{what}: {str(error)[:100]!r} after {time.monotonic() - began:.0f} s", file=sys.stderr)
    return time.monotonic() - began


def _kafka_tools(address: str) -> None:
    tools = find_kafka_tools()
    if isinstance(tools, str):
        print(tools, file=sys.stderr)
        return
    _confluent_transactions(address)
    for line in _TOOL_LINES:
        tool, *words = line.split()
        # Tools with sub-commands take the common options before them; ClusterTool takes them after.
        first = [words.pop(0)] if tool.endswith("ClusterTool") else []
        _tried(line, tools.run, tool, [*first, "--bootstrap-server", address, *words])


def _confluent_transactions(address: str) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    settings = {"bootstrap.servers": address}
    consumer = Consumer({**settings, "group.id": "txn-group", "auto.offset.reset": "earliest"})
    producer = Producer({**settings, "transactional.id": "confluent-txn"})
    producer.init_transactions(30)
    for commits in (True, False):
        producer.begin_transaction()
        producer.produce("txn-topic", b"v", b"k")
        producer.flush(30)
        places = [TopicPartition("txn-topic", 0, 1)]
        producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), 30)
        (producer.commit_transaction if commits else producer.abort_transaction)(30)
    consumer.close()


def _aiokafka_transactions(address: str) -> None:
    from aiokafka import AIOKafkaProducer, TopicPartition

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=address, transactional_id="aiokafka-txn")
        await producer.start()
        try:
            for commits in (True, False):
                await producer.begin_transaction()
                await producer.send_and_wait("txn-topic", b"v", b"k")
                await producer.send_offsets_to_transaction({TopicPartition("txn-topic", 0): 1}, "txn-group")
                await (producer.commit_transaction() if commits else producer.abort_transaction())
        finally:
            await producer.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


def _kafka_python_transactions(address: str) -> None:
    from kafka import KafkaProducer, TopicPartition
    from kafka.structs import OffsetAndMetadata

    producer = KafkaProducer(bootstrap_servers=address, transactional_id="kafka-python-txn")
    try:
        producer.init_transactions()
        for commits in (True, False):
            producer.begin_transaction()
            producer.send("txn-topic", b"v", b"k").get(30)
            offsets = {TopicPartition("txn-topic", 0): OffsetAndMetadata(1, "", -1)}
            producer.send_offsets_to_transaction(offsets, "txn-group")
            (producer.commit_transaction if commits else producer.abort_transaction)()
    finally:
        producer.close(10)


def _barnabas_transactions(address: str) -> None:
    from barnabas.client.blocking import Producer

    producer = Producer({"transactional.id": "barnabas-txn"}, bootstrap_servers=address)
    with producer, producer.transaction():
        producer.send("txn-topic", b"v")


_TRANSACTIONS: dict[str, Callable[[str], None]] = {
    "confluent-kafka": _confluent_transactions,
    "aiokafka": _aiokafka_transactions,
    "kafka-python": _kafka_python_transactions,
    "barnabas": _barnabas_transactions,
}


# Choosing


def _chosen(frames: Iterable[tuple[str, bytes]]) -> list[Recorded]:
    """One request of each shape, small ones first, and only so many of a version."""
    shapes: dict[tuple[int, int, object], Recorded] = {}
    for client, frame in sorted(frames, key=lambda one: (len(one[1]), one)):
        if len(frame) > FRAME_BYTES_MAX:
            continue
        try:
            request = decode_request(frame)
        except BarnabasError:
            continue
        one = Recorded(client, request.api.key, request.version, frame)
        shapes.setdefault((one.key, one.version, _shape(request)), one)
    found: list[Recorded] = []
    of_version: Counter[tuple[int, int]] = Counter()
    of_client: Counter[tuple[str, int, int]] = Counter()
    # The requests with the most content come first: they lead farther into the broker than empty ones.
    for one in sorted(shapes.values(), key=lambda one: -len(one.frame)):
        version, client = (one.key, one.version), (one.client, one.key, one.version)
        if of_version[version] < PER_VERSION_MAX and of_client[client] < PER_CLIENT_MAX:
            of_version[version] += 1
            of_client[client] += 1
            found.append(one)
    return found


def _shape(request: Request) -> object:
    return _shape_of(request.body)


def _shape_of(value: Any) -> object:
    if isinstance(value, list):
        return (min(len(value), 2), *(_shape_of(one) for one in value[:1]))
    if hasattr(type(value), "__schema__"):
        return tuple(_shape_of(getattr(value, field.name)) for field in schema_of(type(value)).fields)
    if isinstance(value, int):
        return (value > 0) - (value < 0)
    return bool(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
