"""A client of another language, which lives in a child process and is spoken to in lines of JSON.

One process for every producer, consumer and admin. It gets one JSON object a line on its standard input and
answers every one, in order, with one line on its standard output: {"ok": value}, or {"error": {"code":
number, "text": "..."}} where the number is Kafka's error code as the broker sent it, or null where the client
gave up by itself. Bytes are base64 strings, null stays null; times are milliseconds; partitions, offsets and
brokers are numbers. Nothing else may be printed there; standard error is kept and shown when the process
dies. At the end of its input the program closes its client, drops what was not delivered, and exits with 0.

Every request names its operation in "op". The first one opens what the process is for:

    version         {} -> "1.2.3"; may be asked without opening anything
    open_producer   {address, topic, codec: "none" "gzip" "snappy" "lz4" "zstd", acks: 0 1 -1, idempotent,
                     give_up_after_ms, linger_ms, batch_bytes_max, reconnect_ms_max, wait_ms_max} -> null
    open_consumer   {address, topic, start, partitions: [number...], committed: bool, fetch_bytes_max: number
                     or null, out_of_range: "earliest" or "fail", reconnect_ms_max, wait_ms_max} -> null;
                     start is {"at": "beginning"}, {"at": "end"}, {"at": "offset", "offset": number}
                     or {"at": "time", "timestamp_ms": number}, for all partitions alike; no group, no
                     commits; fetch_bytes_max is for the whole fetch and for a partition of it alike
    open_admin      {address, reconnect_ms_max, wait_ms_max} -> null

and two more that are in remote_groups.py, with all that is asked of groups.
wait_ms_max is how long an operation may take before the program gives it up with an error. Of a producer:

    send    {value, key, headers: [[name, bytes or null]...], timestamp_ms: number or null, partition: number
             or null} -> null, as soon as the client has taken it: a broker that is away is no reason to wait,
             and what the client says about this message is for finish
    finish  {} -> [{"partition": number or null, "offset": number or null} or {"error": {code, text}}...]:
             waits for all that was sent, one for each in the order of sending; the offset is null with acks 0

Of a consumer, which starts to read when it is opened or when it is first asked:

    settle  {} -> null, when the position in every partition is known: what is produced later comes after it
    read    {count} -> [{"partition", "offset", "timestamp_ms", "timestamp_type": 0 for CreateTime or 1 for
             LogAppendTime or null where the client does not show it, "key", "value", "headers": [[name, bytes
             or null]...]}...]: exactly that many, in the order of the client; what it has beyond them is for
             the next read; an error of the client that it does not get over by itself is the answer

Of an admin, where settings are {name: value}, and what is described is {name: {"value": string or null,
"source": Kafka's name for it, such as "DYNAMIC_TOPIC_CONFIG"}}:

    create_topic     {topic, partitions, settings} -> null; with the broker's default replication factor
    delete_topic     {topic} -> null
    add_partitions   {topic, total} -> null
    delete_records   {topic, partition, before} -> the low watermark afterwards
    topic_settings   {topic} -> what is described
    broker_settings  {broker} -> what is described
    change_topic     {topic, wanted: settings, removed: [name...]} -> null; all that is to be set afterwards
                      is in wanted, for clients that can only replace all settings
    change_broker    {broker, wanted, removed} -> null
    cluster          {} -> {"cluster_id": string or null, "controller": number or null where the client does
                      not show it, "brokers": {"1": "host:port"}}
    topics           {} -> {name: number of partitions}
    watermarks       {topic, partition} -> [where it begins, where it ends]
    offset_for_time  {topic, partition, timestamp_ms} -> the offset, or null if all records are older
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from support.clients.client import (
    BATCH_BYTES_MAX,
    LINGER_MS,
    Ability,
    AtTime,
    Cluster,
    ConsumerOptions,
    Delivery,
    Message,
    ProducerOptions,
    Seen,
    Setting,
    Start,
)
from support.clients.group_client import MemberOptions
from support.clients.remote_groups import RemoteGroupAdmin, RemoteMember
from support.clients.remote_lines import ask, from_bytes, open_part, refused, seen
from support.clients.remote_process import RemoteProcess


class CannotBuild(Exception):
    """Why the program cannot be had on this machine: no tool-chain, no network."""


class Remote:
    """A client whose program `build` makes on first use; it returns the command, or raises CannotBuild."""

    def __init__(
        self, name: str, build: Callable[[], Sequence[str]], cannot: Mapping[Ability, str] | None = None
    ) -> None:
        self.name = name
        self._cannot: Mapping[Ability, str] = cannot or {}
        self._build = build

    @property
    def cannot(self) -> Mapping[Ability, str]:
        return self._cannot

    @cached_property
    def _built(self) -> Sequence[str] | CannotBuild:
        try:
            return self._build()
        except CannotBuild as reason:
            return reason

    def missing(self) -> str | None:
        return str(self._built) if isinstance(self._built, CannotBuild) else None

    def version(self) -> str:
        return str(self._ask_once("version"))

    def _ask_once(self, operation: str) -> Any:
        """For what can be asked without opening anything."""
        process = self._start()
        try:
            return ask(process, operation)
        finally:
            process.close()

    def producer(self, address: str, topic: str, options: ProducerOptions) -> "RemoteProducer":
        return RemoteProducer(self._start(), address, topic, options)

    def consumer(self, address: str, topic: str, options: ConsumerOptions) -> "RemoteConsumer":
        return RemoteConsumer(self._start(), address, topic, options)

    def admin(self, address: str) -> "RemoteAdmin":
        return RemoteAdmin(self._start(), address)

    def member(self, address: str, topic: str, options: MemberOptions) -> RemoteMember:
        return RemoteMember(self._start(), address, topic, options)

    def group_admin(self, address: str) -> RemoteGroupAdmin:
        return RemoteGroupAdmin(self._start(), address)

    def _start(self) -> RemoteProcess:
        assert not isinstance(self._built, CannotBuild), f"{self.name}: {self._built}"
        return RemoteProcess(self.name, self._built)


class RemoteProducer:
    def __init__(self, process: RemoteProcess, address: str, topic: str, options: ProducerOptions) -> None:
        self._process = process
        open_part(
            process,
            "open_producer",
            address=address,
            topic=topic,
            codec=options.codec.name.lower(),
            acks=options.acks,
            idempotent=options.idempotent,
            give_up_after_ms=int(options.give_up_after_s * 1000),
            linger_ms=LINGER_MS,
            batch_bytes_max=BATCH_BYTES_MAX,
        )

    def send(self, message: Message) -> None:
        ask(
            self._process,
            "send",
            value=from_bytes(message.value),
            key=from_bytes(message.key),
            headers=[[name, from_bytes(value)] for name, value in message.headers],
            timestamp_ms=message.timestamp_ms,
            partition=message.partition,
        )

    def finish(self) -> list[Delivery]:
        return [_delivery(each) for each in ask(self._process, "finish")]

    def close(self) -> None:
        self._process.close()


def _delivery(found: Mapping[str, Any]) -> Delivery:
    if "error" in found:
        return Delivery(error=refused(found["error"]))
    return Delivery(partition=found["partition"], offset=found["offset"])


class RemoteConsumer:
    def __init__(self, process: RemoteProcess, address: str, topic: str, options: ConsumerOptions) -> None:
        self._process = process
        open_part(
            process,
            "open_consumer",
            address=address,
            topic=topic,
            start=_start(options.start),
            partitions=list(options.partitions),
            committed=options.committed,
            fetch_bytes_max=options.fetch_bytes_max,
            out_of_range=options.out_of_range,
        )

    def settle(self) -> None:
        ask(self._process, "settle")

    def read(self, count: int) -> list[Seen]:
        found = [seen(each) for each in ask(self._process, "read", count=count)]
        assert len(found) == count, f"{len(found)} of {count} records came"
        return found

    def close(self) -> None:
        self._process.close()


def _start(start: Start) -> Mapping[str, object]:
    match start:
        case "beginning" | "end":
            return {"at": start}
        case AtTime(timestamp_ms):
            return {"at": "time", "timestamp_ms": timestamp_ms}
        case offset:
            return {"at": "offset", "offset": offset}


class RemoteAdmin:
    def __init__(self, process: RemoteProcess, address: str) -> None:
        self._process = process
        open_part(process, "open_admin", address=address)

    def create_topic(self, topic: str, *, partitions: int, settings: Mapping[str, str]) -> None:
        self._ask("create_topic", topic=topic, partitions=partitions, settings=dict(settings))

    def delete_topic(self, topic: str) -> None:
        self._ask("delete_topic", topic=topic)

    def add_partitions(self, topic: str, total: int) -> None:
        self._ask("add_partitions", topic=topic, total=total)

    def delete_records(self, topic: str, partition: int, *, before: int) -> int:
        return int(self._ask("delete_records", topic=topic, partition=partition, before=before))

    def topic_settings(self, topic: str) -> Mapping[str, Setting]:
        return _settings(self._ask("topic_settings", topic=topic))

    def broker_settings(self, broker: int) -> Mapping[str, Setting]:
        return _settings(self._ask("broker_settings", broker=broker))

    def change_topic(self, topic: str, *, wanted: Mapping[str, str], removed: Sequence[str]) -> None:
        self._ask("change_topic", topic=topic, wanted=dict(wanted), removed=list(removed))

    def change_broker(self, broker: int, *, wanted: Mapping[str, str], removed: Sequence[str]) -> None:
        self._ask("change_broker", broker=broker, wanted=dict(wanted), removed=list(removed))

    def cluster(self) -> Cluster:
        found = self._ask("cluster")
        brokers = {int(broker): address for broker, address in found["brokers"].items()}
        return Cluster(cluster_id=found["cluster_id"], controller=found["controller"], brokers=brokers)

    def topics(self) -> Mapping[str, int]:
        return dict(self._ask("topics"))

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        low, high = self._ask("watermarks", topic=topic, partition=partition)
        return low, high

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        found = self._ask("offset_for_time", topic=topic, partition=partition, timestamp_ms=timestamp_ms)
        return None if found is None else int(found)

    def close(self) -> None:
        self._process.close()

    def _ask(self, operation: str, **fields: object) -> Any:
        return ask(self._process, operation, **fields)


def _settings(found: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Setting]:
    return {name: Setting(value=each["value"], source=each["source"]) for name, each in found.items()}
