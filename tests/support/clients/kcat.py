"""kcat: librdkafka on the command line. Its producer and its consumer are processes."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, NamedTuple

from barnabas.records.header import Codec
from support.clients.client import (
    LINGER_MS,
    WAIT_SECONDS_MAX,
    Ability,
    AtTime,
    Cluster,
    ConsumerOptions,
    Delivery,
    Headers,
    Message,
    ProducerOptions,
    Seen,
    Setting,
)
from support.clients.group_client import MemberOptions
from support.clients.kcat_groups import KcatGroupAdmin, KcatMember
from support.clients.kcat_process import KcatProcess
from support.clients.kcat_words import common, refused, seen

_KEY_ENDS = b"\x1f"
_DELIVERED = re.compile(r"% Message delivered to partition (\d+) \(offset (-?\d+)\)")
_FAILED = re.compile(r"% Delivery failed for message: (.*)")
_AT_END = re.compile(r"% Reached end of topic \S+ \[(\d+)\] at offset")
_VERSION = re.compile(r"Version (\S+) .*librdkafka (\S+)")
_NO_ADMIN = "kcat produces, consumes, lists and queries; it has no such command"


class Kcat:
    name = "kcat"
    cannot: Mapping[Ability, str] = {
        Ability.CREATE_TOPICS: _NO_ADMIN,
        Ability.DELETE_TOPICS: _NO_ADMIN,
        Ability.ADD_PARTITIONS: _NO_ADMIN,
        Ability.DELETE_RECORDS: _NO_ADMIN,
        Ability.SETTINGS: _NO_ADMIN,
        Ability.SET_TIMESTAMPS: "kcat has no option for the timestamp of a message",
        Ability.NULL_KEY_AND_VALUE: "kcat passes over an empty line",
        Ability.NEW_GROUP_PROTOCOL: "the librdkafka of kcat knows the classic group protocol only",
        Ability.COMMIT_OUTSIDE: _NO_ADMIN,
        Ability.DESCRIBE_GROUPS: _NO_ADMIN,
        Ability.DESCRIBE_NEW_GROUPS: _NO_ADMIN,
        Ability.DELETE_GROUPS: _NO_ADMIN,
        Ability.ALTER_GROUP_OFFSETS: _NO_ADMIN,
        Ability.DELETE_GROUP_OFFSETS: _NO_ADMIN,
    }

    def version(self) -> str:
        shown = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=True, timeout=60).stdout
        found = _VERSION.search(shown)
        assert found, shown
        return f"{found[1]} (librdkafka {found[2]})"

    def missing(self) -> str | None:
        return None if shutil.which("kcat") else "kcat is not installed"

    def producer(self, address: str, topic: str, options: ProducerOptions) -> "KcatProducer":
        return KcatProducer(address, topic, options)

    def consumer(self, address: str, topic: str, options: ConsumerOptions) -> "KcatConsumer":
        return KcatConsumer(address, topic, options)

    def admin(self, address: str) -> "KcatAdmin":
        return KcatAdmin(address)

    def member(self, address: str, topic: str, options: MemberOptions) -> KcatMember:
        return KcatMember(address, topic, options)

    def group_admin(self, address: str) -> KcatGroupAdmin:
        return KcatGroupAdmin()


class _Run(NamedTuple):
    """What one run of kcat -P does the same for all of its messages."""

    partition: int | None
    headers: Headers
    empty_is_null: bool


class KcatProducer:
    """One process for as long as the messages have their headers and partition in common."""

    def __init__(self, address: str, topic: str, options: ProducerOptions) -> None:
        self._options = options
        self._arguments = [
            *common(address),
            *("-P", "-vv", "-t", topic, "-K", "\\x1f"),
            *("-X", f"acks={options.acks}"),
            *("-X", f"enable.idempotence={'true' if options.idempotent else 'false'}"),
            *("-X", f"linger.ms={LINGER_MS}"),
            *("-X", f"message.timeout.ms={int(options.give_up_after_s * 1000)}"),
            *("-X", f"max.in.flight={5 if options.idempotent else 1}"),
        ]
        if options.codec is not Codec.NONE:
            self._arguments += ["-z", options.codec.name.lower()]
        self._run: _Run | None = None
        self._process: KcatProcess | None = None
        self._deliveries: list[Delivery] = []
        self._sent = 0

    def send(self, message: Message) -> None:
        assert message.timestamp_ms is None, "declared as impossible"
        run = _Run(message.partition, message.headers, message.value is None)
        if run != self._run:
            self._end_run()
            self._start(run)
        assert self._process is not None
        assert self._process.process.stdin is not None
        key = b"" if message.key is None else message.key + _KEY_ENDS
        self._process.process.stdin.write(key + (message.value or b"") + b"\n")
        self._process.process.stdin.flush()
        self._sent += 1

    def _start(self, run: _Run) -> None:
        arguments = list(self._arguments)
        if run.partition is not None:
            arguments += ["-p", str(run.partition)]
        for name, value in run.headers:
            arguments += ["-H", name if value is None else f"{name}={value.decode()}"]
        if run.empty_is_null:
            arguments.append("-Z")
        self._run = run
        self._process = KcatProcess(arguments)

    def _end_run(self) -> None:
        if self._process is None:
            return
        self._process.finish()
        for line in self._process.complaints:
            if found := _DELIVERED.match(line):
                offset = int(found[2]) if self._options.acks else None
                self._deliveries.append(Delivery(partition=int(found[1]), offset=offset))
            elif found := _FAILED.match(line):
                self._deliveries.append(Delivery(error=refused(found[1])))
        self._process = None

    def finish(self) -> list[Delivery]:
        self._end_run()
        assert len(self._deliveries) == self._sent, (
            f"{len(self._deliveries)} of {self._sent} messages are delivered or refused"
        )
        return self._deliveries

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()


class KcatConsumer:
    def __init__(self, address: str, topic: str, options: ConsumerOptions) -> None:
        arguments = [
            *common(address),
            *("-C", "-u", "-J", "-t", topic, "-o", _offset(options)),
            *(
                "-X",
                f"topic.auto.offset.reset={'earliest' if options.out_of_range == 'earliest' else 'error'}",
            ),
            *("-X", f"isolation.level=read_{'committed' if options.committed else 'uncommitted'}"),
            *("-X", "check.crcs=true"),
        ]
        if len(options.partitions) == 1:
            arguments += ["-p", str(options.partitions[0])]
        if options.fetch_bytes_max is not None:
            limit = max(1000, options.fetch_bytes_max)
            for name in ("fetch.max.bytes", "fetch.message.max.bytes", "message.max.bytes"):
                arguments += ["-X", f"{name}={limit}"]
        self._wanted = set(options.partitions)
        self._process = KcatProcess(arguments)

    def settle(self) -> None:
        deadline = monotonic() + WAIT_SECONDS_MAX
        while True:
            found = (_AT_END.match(line) for line in list(self._process.complaints))
            if {int(each[1]) for each in found if each} >= self._wanted:
                return
            assert self._process.wait_for_more(deadline), f"not at the end: {list(self._process.complaints)}"

    def read(self, count: int) -> list[Seen]:
        found: list[Seen] = []
        deadline = monotonic() + WAIT_SECONDS_MAX
        while len(found) < count:
            if self._process.output:
                found.append(seen(json.loads(self._process.output.popleft())))
            elif self._process.ended and not self._process.output:
                raise refused("\n".join(self._process.complaints))
            else:
                assert self._process.wait_for_more(deadline), (
                    f"{len(found)} of {count} records came: {list(self._process.complaints)}"
                )
        return found

    def close(self) -> None:
        self._process.kill()


def _offset(options: ConsumerOptions) -> str:
    start = options.start
    return f"s@{start.timestamp_ms}" if isinstance(start, AtTime) else str(start)


class KcatAdmin:
    """Questions only; the rest is declared in Kcat.cannot."""

    def __init__(self, address: str) -> None:
        self._address = address

    def create_topic(self, topic: str, *, partitions: int, settings: Mapping[str, str]) -> None:
        raise NotImplementedError(_NO_ADMIN)

    def delete_topic(self, topic: str) -> None:
        raise NotImplementedError(_NO_ADMIN)

    def add_partitions(self, topic: str, total: int) -> None:
        raise NotImplementedError(_NO_ADMIN)

    def delete_records(self, topic: str, partition: int, *, before: int) -> int:
        raise NotImplementedError(_NO_ADMIN)

    def topic_settings(self, topic: str) -> Mapping[str, Setting]:
        raise NotImplementedError(_NO_ADMIN)

    def broker_settings(self, broker: int) -> Mapping[str, Setting]:
        raise NotImplementedError(_NO_ADMIN)

    def change_topic(self, topic: str, *, wanted: Mapping[str, str], removed: Sequence[str]) -> None:
        raise NotImplementedError(_NO_ADMIN)

    def change_broker(self, broker: int, *, wanted: Mapping[str, str], removed: Sequence[str]) -> None:
        raise NotImplementedError(_NO_ADMIN)

    def cluster(self) -> Cluster:
        found = self._ask("-L")
        brokers = {each["id"]: each["name"] for each in found["brokers"]}
        return Cluster(cluster_id=None, controller=found["controllerid"], brokers=brokers)

    def topics(self) -> Mapping[str, int]:
        return {each["topic"]: len(each["partitions"]) for each in self._ask("-L")["topics"]}

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        # One question each, because a partition may occur but once.
        return self._query(topic, partition, -2), self._query(topic, partition, -1)

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        found = self._query(topic, partition, timestamp_ms)
        return None if found < 0 else found

    def _query(self, topic: str, partition: int, timestamp_ms: int) -> int:
        found = self._ask("-Q", "-t", f"{topic}:{partition}:{timestamp_ms}")
        return int(found[topic][str(partition)]["offset"])

    def _ask(self, *arguments: str) -> Any:
        command = ["kcat", *common(self._address), "-J", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WAIT_SECONDS_MAX)
        if done.returncode != 0:
            raise refused(done.stderr)
        return json.loads(done.stdout)

    def close(self) -> None:
        return
