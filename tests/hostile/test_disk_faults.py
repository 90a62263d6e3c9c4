"""Full disks, and files that fail under a running broker: minimal damage, a clear log line, no traceback."""

import errno
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import confluent_kafka
import pytest

from barnabas.client import blocking
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.topics import CreateTopicsRequest, DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.transactions import InitProducerIdRequest
from support.hostile.victim import SERVED_WITHIN_S, Victim
from support.log.failing_disk import FailingCalls, fill_up, small_disk
from support.wire.client import ConnectionClosed, WireClient
from support.wire.requests import (
    batch,
    fetch_of,
    fetched,
    new_topic,
    produce_of,
    produced,
    values_of,
)

SETTINGS = {
    "log.initial.task.delay.ms": 100,
    "log.flush.offset.checkpoint.interval.ms": 100,
    "log.retention.check.interval.ms": 100,
    "log.segment.delete.delay.ms": 100,
    # Batches of tests are months old.
    "log.retention.ms": -1,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
}
KB = 1024
MB = KB * KB
NO_ERROR, STORAGE_ERROR = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR


# What a client does


def create(client: WireClient, topic: str) -> ErrorCode:
    request = CreateTopicsRequest(topics=[new_topic(topic, 1, {})], timeout_ms=10_000)
    return ErrorCode(client.ask(request, 5).topics[0].error_code)


def delete(client: WireClient, topic: str) -> ErrorCode:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=10_000)
    return ErrorCode(client.ask(request, 6).responses[0].error_code)


def produce(client: WireClient, topic: str, value: bytes) -> ErrorCode:
    return ErrorCode(produced(client.ask(produce_of(topic, 0, batch(value), acks=-1), 9)).error_code)


def values(client: WireClient, topic: str) -> list[bytes | None]:
    """All values of a topic, read with as many requests as necessary."""
    found: list[bytes | None] = []
    while part := values_of(fetched(client.ask(fetch_of(topic, {0: len(found)}), 12))):
        found += part
    return found


def fetch_error(client: WireClient, topic: str, offset: int = 0) -> ErrorCode:
    return ErrorCode(fetched(client.ask(fetch_of(topic, {0: offset}), 12)).error_code)


def commit(client: WireClient, offset: int) -> ErrorCode:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    answer = client.ask(OffsetCommitRequest(group_id="g", topics=[topic]), 8)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def init_transactions(client: WireClient) -> ErrorCode:
    request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
    return ErrorCode(client.ask(request, 4).error_code)


def eventually(act: Callable[[], ErrorCode], *, within_s: float = 10) -> None:
    """Retry until it succeeds, as a client does."""
    deadline = time.monotonic() + within_s
    while (code := act()) is not NO_ERROR:
        assert code.retriable, code.name
        assert time.monotonic() < deadline, code.name
        time.sleep(0.1)


def prepare(client: WireClient) -> None:
    """Create every kind of log and write to it."""
    for key_type in (0, 1):
        client.ask(FindCoordinatorRequest(key="g", key_type=key_type), 3)
    assert create(client, "orders") is NO_ERROR
    assert produce(client, "orders", b"first") is NO_ERROR
    eventually(lambda: commit(client, 1))
    eventually(lambda: init_transactions(client))


def serious(victim: Victim) -> list[str]:
    return [line for line in victim.log.splitlines() if re.search(" (WARNING|ERROR|CRITICAL) ", line)]


# A full disk


@contextmanager
def on_a_small_disk(root: Path) -> Iterator[tuple[Victim, Path]]:
    with small_disk(root / "disk", 16) as disk:
        victim = Victim(root, settings=SETTINGS)
        victim.logs = disk / "logs"
        with victim:
            yield victim, disk


def test_a_full_disk_serves_reads_and_rejects_writes_until_space_is_freed(
    tmp_path: Path,
) -> None:
    with on_a_small_disk(tmp_path) as (victim, disk), WireClient(victim.address) as client:
        prepare(client)
        reserve = disk / "reserve"
        reserve.write_bytes(bytes(6 * MB))
        written = [b"first"]
        while produce(client, "orders", b"x" * 100 * KB) is NO_ERROR:
            written.append(b"x" * 100 * KB)
        filler = fill_up(disk)
        slowest_s = 0.0
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            started = time.monotonic()
            assert produce(client, "orders", b"x" * 100 * KB) is STORAGE_ERROR
            assert values(client, "orders") == written
            commit(client, 2)
            init_transactions(client)
            slowest_s = max(slowest_s, time.monotonic() - started)
            fill_up(disk, "filler2")
        # The metadata log has room in the page that it has begun.
        created = 0
        while (code := create(client, f"late-{created}")) is NO_ERROR:
            assert produce(client, f"late-{created}", b"v") is STORAGE_ERROR
            created += 1
        assert code is STORAGE_ERROR
        assert slowest_s < 4 * SERVED_WITHIN_S
        # One for the disk, one for the metadata, and one for each topic that has no log yet.
        assert len(serious(victim)) <= 2 + created, serious(victim)
        for file in (reserve, filler, disk / "filler2"):
            file.unlink()

        eventually(lambda: produce(client, "orders", b"last"))
        eventually(lambda: create(client, "created"))
        for number in range(created):
            eventually(partial(produce, client, f"late-{number}", b"v"))
        eventually(lambda: commit(client, 3))
        eventually(lambda: init_transactions(client))
        assert values(client, "orders") == [*written, b"last"]
        victim.eventually(lambda: "disk has room again" in victim.log, "a line says that there is room")
        victim.check()


def send_with_barnabas(address: str, topic: str, values: list[bytes]) -> Callable[[], None]:
    producer = blocking.Producer({"bootstrap.servers": address})
    for value in values:
        producer.send(topic, value)
    return producer.close


def send_with_librdkafka(address: str, topic: str, values: list[bytes]) -> Callable[[], None]:
    producer = confluent_kafka.Producer({"bootstrap.servers": address, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value)

    def flush() -> None:
        assert producer.flush(30) == 0

    return flush


@pytest.mark.parametrize("send", [send_with_barnabas, send_with_librdkafka])
def test_a_producer_retries_until_there_is_disk_space(
    send: Callable[[str, str, list[bytes]], Callable[[], None]], tmp_path: Path
) -> None:
    sent = [b"%d" % number + b"x" * 50 * KB for number in range(20)]
    with on_a_small_disk(tmp_path) as (victim, disk), WireClient(victim.address) as client:
        prepare(client)
        reserve = disk / "reserve"
        reserve.write_bytes(bytes(4 * MB))
        filler = fill_up(disk)
        flush = send(victim.address, "orders", sent)
        victim.eventually(lambda: "disk full" in victim.log, "a write was refused")
        assert values(client, "orders") == [b"first"]
        filler.unlink()
        reserve.unlink()
        flush()
        assert values(client, "orders") == [b"first", *sent]
        victim.check()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_records_acknowledged_on_a_full_disk_survive_a_restart(end: str, tmp_path: Path) -> None:
    with on_a_small_disk(tmp_path) as (victim, disk):
        reserve = disk / "reserve"
        reserve.write_bytes(bytes(4 * MB))
        with WireClient(victim.address) as client:
            prepare(client)
            written = [b"first"]
            # Batches of a size that no page boundary divides: the last one is torn.
            while produce(client, "orders", b"x" * 12_345) is NO_ERROR:
                written.append(b"x" * 12_345)
            fill_up(disk)
            assert produce(client, "orders", b"x" * 12_345) is STORAGE_ERROR
        [log] = (victim.logs / "orders-0").glob("*.log")
        size = log.stat().st_size
        if end == "kill":
            victim.kill()
        else:
            assert victim.process is not None
            victim.process.terminate()
            assert victim.process.wait(30) in (0, 1)
            victim._forget()
        assert log.stat().st_size == size
        reserve.unlink()
        victim.start()
        with WireClient(victim.address) as client:
            assert values(client, "orders") == written
            assert produce(client, "orders", b"last") is NO_ERROR
            assert values(client, "orders") == [*written, b"last"]
        assert "the last" not in victim.log, "a torn batch was left for the start to cut off"
        victim.check()


def test_retention_makes_room_on_a_full_disk(tmp_path: Path) -> None:
    """All records expire. The active segment stays: a new one has no room before the others are gone."""
    with on_a_small_disk(tmp_path) as (victim, disk), WireClient(victim.address) as client:
        configs = {"segment_bytes": MB, "retention_ms": 4_000}
        request = CreateTopicsRequest(topics=[new_topic("orders", 1, configs)], timeout_ms=10_000)
        assert client.ask(request, 5).topics[0].error_code == NO_ERROR

        # All at the same moment.
        data = batch(b"x" * 100 * KB, time=int(time.time() * 1000))

        def produce_it() -> ErrorCode:
            return ErrorCode(produced(client.ask(produce_of("orders", 0, data, acks=-1), 9)).error_code)

        for _ in range(50):
            assert produce_it() is NO_ERROR
        # Somebody else takes all the room before this log finds that there is none.
        fill_up(disk)
        directory = victim.logs / "orders-0"
        before = len(list(directory.glob("*.log")))
        victim.eventually(lambda: len(list(directory.glob("*.log"))) < before, "segments are removed")
        eventually(produce_it, within_s=15)
        victim.check()


def test_a_start_on_a_full_disk_says_so_and_works_when_there_is_room(tmp_path: Path) -> None:
    with on_a_small_disk(tmp_path) as (victim, disk):
        with WireClient(victim.address) as client:
            prepare(client)
        victim.kill()
        filler = fill_up(disk)
        lines = len(victim.log.splitlines())
        with pytest.raises(AssertionError, match="did not start"):
            victim.start()
        said = "\n".join(victim.log.splitlines()[lines:])
        assert re.search(
            f"{victim.logs}.*( is full|No space left on device; free space on this disk)", said
        ), said
        assert "Traceback" not in said
        filler.unlink()
        victim.start()
        with WireClient(victim.address) as client:
            assert values(client, "orders") == [b"first"]
        victim.check()


# Files that somebody removes, replaces or cuts


def replace_by_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def remove_partition(path: Path) -> None:
    shutil.rmtree(path.parent)


NUMBERS = {
    "removed": errno.ENOENT,
    "replaced by a directory": errno.EISDIR,
    "removed with its partition": errno.ENOENT,
}
HARM: dict[str, Callable[[Path], None]] = {
    "removed": Path.unlink,
    "replaced by a directory": replace_by_directory,
    "removed with its partition": remove_partition,
}


@pytest.mark.parametrize("harm", HARM)
def test_a_damaged_segment_fails_only_its_partition(harm: str, tmp_path: Path) -> None:
    with Victim(tmp_path, settings=SETTINGS) as victim:
        with WireClient(victim.address) as client:
            assert create(client, "harmed") is NO_ERROR
            for _ in range(20):
                assert produce(client, "harmed", b"x" * 50 * KB) is NO_ERROR
        # After a restart no file of it is open.
        victim.stop()
        victim.start()
        [log] = (victim.logs / "harmed-0").glob("*.log")
        with victim.bystander() as bystander, WireClient(victim.address) as client:
            HARM[harm](log)
            assert fetch_error(client, "harmed", 15) is STORAGE_ERROR
            assert produce(client, "harmed", b"x") is STORAGE_ERROR
            assert f'error="[Errno {NUMBERS[harm]}]' in victim.log
            assert str(log.parent) in victim.log
            assert delete(client, "harmed") is NO_ERROR
            assert create(client, "harmed") is NO_ERROR
            assert produce(client, "harmed", b"new") is NO_ERROR
            assert values(client, "harmed") == [b"new"]
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        assert len(serious(victim)) < 10, serious(victim)
        victim.check()


def test_a_truncated_segment_serves_the_rest_and_the_log_continues(tmp_path: Path) -> None:
    with Victim(tmp_path, settings=SETTINGS) as victim:
        with WireClient(victim.address) as client:
            assert create(client, "cut") is NO_ERROR
            for _ in range(20):
                assert produce(client, "cut", b"x" * 50 * KB) is NO_ERROR
        victim.stop()
        victim.start()
        [log] = (victim.logs / "cut-0").glob("*.log")
        with victim.bystander() as bystander, WireClient(victim.address) as client:
            os.truncate(log, log.stat().st_size // 2)
            for _ in range(3):
                assert fetch_error(client, "cut", 15) is STORAGE_ERROR
            [line] = serious(victim)
            assert f"{log} is damaged at byte" in line
            request = fetch_of("cut", {0: 5}, partition_max_bytes=60 * KB)
            assert len(values_of(fetched(client.ask(request, 12)))) == 1
            assert produce(client, "cut", b"new") is NO_ERROR
            answer = client.ask(fetch_of("cut", {0: 20}), 12)
            assert values_of(fetched(answer)) == [b"new"]
            # A response that was to have more bytes than there are cannot be ended. Kafka does the same.
            with pytest.raises(ConnectionClosed):
                fetch_error(client, "cut", 5)
            victim.eventually(
                lambda: f"bytes before the end of the range to send: '{log}" in victim.log, "a line"
            )
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.check()


# Calls that fail


@contextmanager
def with_failing_calls(
    root: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, object]
) -> Iterator[tuple[Victim, FailingCalls]]:
    calls = FailingCalls(root)
    for name, value in calls.environment.items():
        monkeypatch.setenv(name, value)
    with Victim(root, settings=settings) as victim:
        yield victim, calls


def test_an_unreadable_segment_fails_its_partition_until_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with with_failing_calls(tmp_path, monkeypatch, SETTINGS) as (victim, calls):
        with WireClient(victim.address) as client:
            assert create(client, "bad") is NO_ERROR
            for _ in range(20):
                assert produce(client, "bad", b"x" * 50 * KB) is NO_ERROR
        victim.stop()
        victim.start()
        with victim.bystander() as bystander, WireClient(victim.address) as client:
            calls.fail("read", errno.EIO, "/bad-0/00000000000000000000.")
            assert fetch_error(client, "bad") is STORAGE_ERROR
            assert produce(client, "bad", b"x") is STORAGE_ERROR
            assert "log out of service tp=bad-0" in victim.log
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        calls.mend()
        # Not a clean stop: the next start recovers the log.
        victim.stop(code=1)
        victim.start()
        with WireClient(victim.address) as client:
            assert len(values(client, "bad")) == 20
        victim.check()


@pytest.mark.parametrize(
    ("call", "number", "text"),
    [("write", errno.EIO, "Input/output error"), ("write", errno.EROFS, "Read-only file system")],
    ids=["EIO", "read-only"],
)
def test_a_disk_that_cannot_be_written_ends_a_broker_with_one_directory(
    call: str, number: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Kafka, which halts. A broker that continues could acknowledge records that are not on disk."""
    with with_failing_calls(tmp_path, monkeypatch, SETTINGS) as (victim, calls):
        with WireClient(victim.address) as client:
            prepare(client)
            calls.fail(call, number, "/orders-0/")
            try:
                assert produce(client, "orders", b"lost") is STORAGE_ERROR
            except (ConnectionClosed, OSError):
                # It ended before it could answer.
                assert "log directory failed" in victim.log
        assert victim.process is not None
        assert victim.process.wait(30) == 1
        victim._forget()
        assert f"log directory failed path={victim.logs}" in victim.log
        assert text in victim.log
        assert "Traceback" not in victim.log, victim.log[-3000:]
        calls.mend()
        victim.start()
        with WireClient(victim.address) as client:
            assert values(client, "orders") == [b"first"]
        victim.check()
