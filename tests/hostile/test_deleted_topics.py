"""Topics that are created and deleted while in use leave nothing in memory or on disk."""

import os
import socket
import threading
import time
from pathlib import Path

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import decode_response, encode_request
from barnabas.protocol.messages.topics import CreateTopicsRequest, DeleteTopicsRequest, DeleteTopicState
from support.hostile.victim import SERVED_WITHIN_S, Victim
from support.scale import scaled
from support.wire.client import WireClient, key_of
from support.wire.requests import (
    batch,
    fetch_of,
    fetched,
    new_topic,
    produce_of,
    produced,
    values_of,
    went_well,
)

DELETE_DELAY_MS = 500
# All chores of the log manager go on while topics come and go.
SETTINGS = {
    "log.segment.delete.delay.ms": DELETE_DELAY_MS,
    "log.initial.task.delay.ms": 100,
    "log.retention.check.interval.ms": 100,
    "log.flush.offset.checkpoint.interval.ms": 100,
    "log.cleaner.backoff.ms": 100,
    "producer.id.expiration.check.interval.ms": 100,
    # Batches of tests are months old.
    "log.retention.ms": -1,
}
TOPICS = scaled("BARNABAS_TOPICS", 300, 20_000)
AT_ONCE = 100
MB = 1 << 20
_GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def create(client: WireClient, *names: str, **configs: object) -> None:
    topics = [new_topic(name, 1, configs) for name in names]
    for answer in client.ask(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 5).topics:
        went_well(answer)


def delete(client: WireClient, *names: str) -> None:
    topics = [DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in names]
    for answer in client.ask(DeleteTopicsRequest(topics=topics, timeout_ms=60_000), 6).responses:
        went_well(answer)


def nothing_is_left(victim: Victim) -> None:
    """No descriptor and no directory of a deleted topic, and no error in the log."""
    victim.eventually(lambda: not held(victim), f"descriptors of deleted topics: {held(victim)[:5]}")
    victim.eventually(lambda: not put_aside(victim), "directories of deleted topics are left")
    errors = [line for line in victim.log.splitlines() if " ERROR " in line or " CRITICAL " in line]
    assert errors == []


def put_aside(victim: Victim) -> list[str]:
    return [name for name in os.listdir(victim.logs) if name.endswith("-delete")]


def held(victim: Victim) -> list[str]:
    return [file for file in victim.files if "-delete" in file or "(deleted)" in file]


@pytest.mark.scaled
def test_created_and_deleted_topics_leave_nothing_behind(tmp_path: Path) -> None:
    names = [f"topic-{number}" for number in range(TOPICS)]
    with Victim(tmp_path, settings=SETTINGS) as victim:
        with WireClient(victim.address, timeout_s=120) as client:
            come_and_go(client, names[:AT_ONCE])
            nothing_is_left(victim)
            before_mb, before = victim.rss_mb, len(victim.files)
            with victim.bystander() as bystander:
                come_and_go(client, names)
        nothing_is_left(victim)
        victim.eventually(lambda: len(victim.files) <= before + 5, f"{before} descriptors as before")
        victim.memory_returns_to(before_mb)
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.check()


def come_and_go(client: WireClient, names: list[str]) -> None:
    for at in range(0, len(names), AT_ONCE):
        some = names[at : at + AT_ONCE]
        create(client, *some)
        for name in some:
            produced(client.ask(produce_of(name, 0, batch(b"x" * 1000), acks=1), 9))
        delete(client, *some)


def test_deleted_topics_release_their_disk_space(tmp_path: Path) -> None:
    with Victim(tmp_path, settings=SETTINGS) as victim:
        with WireClient(victim.address) as client:
            names = [f"large-{number}" for number in range(5)]
            create(client, *names)
            for name in names:
                fill(client, name, 4 * MB)
            delete(client, *names)
            nothing_is_left(victim)
        victim.check()


def fill(client: WireClient, topic: str, size: int) -> None:
    for _ in range(size // (MB // 2)):
        assert produced(client.ask(produce_of(topic, 0, batch(b"x" * (MB // 2)), acks=1), 9)).error_code == 0


def test_a_slow_reader_gets_all_of_a_response_whose_topic_was_deleted(tmp_path: Path) -> None:
    """The kernel is still sending from the file when its directory is removed."""
    size = 16 * MB
    with Victim(tmp_path, settings=SETTINGS) as victim, WireClient(victim.address) as client:
        create(client, "slow")
        fill(client, "slow", size)
        host, _, port = victim.address.rpartition(":")
        with socket.socket() as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.settimeout(30)
            reader.connect((host, int(port)))
            request = fetch_of("slow", {0: 0}, max_bytes=size, partition_max_bytes=size)
            reader.sendall(encoded(request, 12))
            length = int.from_bytes(read_exactly(reader, 4), "big")
            delete(client, "slow")
            victim.eventually(lambda: not put_aside(victim), "the directory is removed")
            time.sleep(2 * DELETE_DELAY_MS / 1000)
            [file] = held(victim)
            assert file.endswith(".log (deleted)")
            _, answer = decode_response(read_exactly(reader, length), 12, key=ApiKey.FETCH)
            # Decoding checks the CRC of every batch.
            assert {len(value or b"") for value in values_of(fetched(answer))} == {MB // 2}
        nothing_is_left(victim)
        victim.check()


def encoded(body: object, version: int) -> bytes:
    return bytes(encode_request(body, version, key=key_of(body), correlation_id=1, client_id="slow"))


def read_exactly(reader: socket.socket, size: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < size:
        piece = reader.recv(size - len(pieces))
        assert piece, "the connection was closed"
        pieces += piece
    return bytes(pieces)


def test_a_long_poll_of_a_deleted_topic_ends_at_once(tmp_path: Path) -> None:
    with Victim(tmp_path, settings=SETTINGS) as victim, WireClient(victim.address) as admin:
        create(admin, "polled")
        pollers = [WireClient(victim.address) for _ in range(20)]
        request = fetch_of("polled", {0: 0}, max_wait_ms=20_000)
        for poller in pollers:
            poller.send(request, 12)
        started = time.monotonic()
        delete(admin, "polled")
        for poller in pollers:
            _, answer = poller.receive(ApiKey.FETCH, 12)
            assert fetched(answer).error_code in _GONE
            poller.close()
        assert time.monotonic() - started < 5
        nothing_is_left(victim)
        victim.check()


def test_topics_are_deleted_and_made_again_under_their_producers(tmp_path: Path) -> None:
    rounds = scaled("BARNABAS_ROUNDS", 6, 200)
    unexpected: list[str] = []
    with Victim(tmp_path, settings=SETTINGS) as victim:
        over = threading.Event()
        producers = [
            threading.Thread(target=keep_producing, args=(victim, over, unexpected)) for _ in range(3)
        ]
        for producer in producers:
            producer.start()
        with WireClient(victim.address) as admin:
            for _ in range(rounds):
                create(admin, "again")
                time.sleep(0.1)
                delete(admin, "again")
        over.set()
        for producer in producers:
            producer.join()
        assert unexpected == []
        nothing_is_left(victim)
        victim.check()


def keep_producing(victim: Victim, over: threading.Event, unexpected: list[str]) -> None:
    allowed = (ErrorCode.NONE, *_GONE)
    body = produce_of("again", 0, batch(b"x" * 10_000), acks=1)
    with WireClient(victim.address) as client:
        while not over.is_set():
            for _ in range(20):
                client.send(body, 9)
            for _ in range(20):
                _, answer = client.receive(ApiKey.PRODUCE, 9)
                code = ErrorCode(produced(answer).error_code)
                if code not in allowed:
                    unexpected.append(code.name)


@pytest.mark.scaled
def test_a_topic_is_deleted_and_made_again_while_it_is_compacted(tmp_path: Path) -> None:
    """The new topic has only its own records, whatever the cleaner was rewriting."""
    rounds = scaled("BARNABAS_ROUNDS", 12, 300)
    # A segment for every batch or two, all of them worth compacting.
    configs = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": 0.01, "segment_bytes": MB}
    with Victim(tmp_path, settings={**SETTINGS, "log.cleaner.backoff.ms": 1}) as victim:
        with WireClient(victim.address) as client:
            for number in range(rounds):
                create(client, "compacted", **configs)
                values = [bytes([65 + number % 26]) * (MB // 2) for _ in range(2 + number % 7)]
                for value in values:
                    data = batch(value, key=b"k")
                    assert produced(client.ask(produce_of("compacted", 0, data, acks=1), 9)).error_code == 0
                time.sleep(0.02 * (number % 5))
                answer = client.ask(fetch_of("compacted", {0: 0}, partition_max_bytes=8 * MB), 12)
                assert set(values_of(fetched(answer))) == {values[0]}
                delete(client, "compacted")
            nothing_is_left(victim)
        victim.check()


def test_a_topic_made_again_has_no_record_of_the_old_one(tmp_path: Path) -> None:
    with Victim(tmp_path, settings=SETTINGS) as victim:
        with WireClient(victim.address) as client:
            for number in range(5):
                create(client, "same")
                client.ask(produce_of("same", 0, batch(b"%d" % number), acks=1), 9)
                assert values_of(fetched(client.ask(fetch_of("same", {0: 0}), 12))) == [b"%d" % number]
                if number < 4:
                    delete(client, "same")
        victim.stop()
        victim.start()
        with WireClient(victim.address) as client:
            assert values_of(fetched(client.ask(fetch_of("same", {0: 0}), 12))) == [b"4"]
        nothing_is_left(victim)
        victim.check()
