"""However many connections there are, logs and other clients keep their share of the file descriptors."""

import resource
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import ApiVersionsRequest
from barnabas.protocol.messages.topics import CreateTopicsRequest
from barnabas.server.ports import divide
from support.hostile.crowd import Crowd
from support.hostile.victim import SERVED_WITHIN_S, Victim
from support.scale import scaled
from support.wire.client import ConnectionClosed, WireClient
from support.wire.requests import TIMEOUT_MS, batch, fetch_of, new_topic, produce_of, produced

FILES = scaled("BARNABAS_FILES", 600, 20_000)
# Of the limit of the broker. The crowd is in this process, which needs descriptors as well.
OF_OURS = 2 * FILES + 1_000
# So that several are written during a test.
CHECKPOINTS = {"log.flush.offset.checkpoint.interval.ms": 300, "log.initial.task.delay.ms": 300}
OTHER_HOST = "127.0.0.2"
HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]


@pytest.fixture(autouse=True)
def many_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OF_OURS, before[1]), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def create(client: WireClient, *names: str) -> list[int]:
    topics = [new_topic(name, 1, {}) for name in names]
    answer = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS), 5)
    return [one.error_code for one in answer.topics]


def is_served(victim: Victim) -> bool:
    try:
        with WireClient(victim.address, timeout_s=5) as client:
            client.ask(ApiVersionsRequest(), 0)
    except (OSError, ConnectionClosed):
        return False
    return True


def checkpoint_written_at(victim: Victim) -> float:
    return (victim.logs / "recovery-point-offset-checkpoint").stat().st_mtime


def test_the_soft_limit_is_raised_to_the_hard_limit_and_divided(tmp_path: Path) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, HARD))

    with Victim(tmp_path) as victim:
        assert resource.prlimit(victim.pid, resource.RLIMIT_NOFILE) == (HARD, HARD)
        share = divide(HARD)
        shares = f"logs={share.logs} connections={share.connections} reserve={share.reserve}"
        assert f"file descriptors divided limit={HARD} {shares}" in victim.log
        victim.check()


@pytest.mark.scaled
def test_idle_connections_use_only_their_share_of_descriptors(tmp_path: Path) -> None:
    share = divide(FILES)
    with Victim(tmp_path, files_max=FILES, settings=CHECKPOINTS) as victim:
        assert is_served(victim)
        before_mb, before_files = victim.rss_mb, len(victim.files)
        with victim.bystander() as bystander, WireClient(victim.address) as admin:
            with Crowd(victim.address) as crowd:
                crowd.grow(FILES, until_refused=True)
                victim.eventually(lambda: crowd.look() <= share.connections, "those above it are closed")
                # The bystander and the admin have theirs, and Kafka took 97 % of all descriptors.
                assert len(crowd) >= share.connections - 5
                # What comes next is closed as well, at once, and costs no line each.
                crowd.grow(200)
                victim.eventually(lambda: crowd.look() <= share.connections, "the rest is closed")
                assert len(victim.files) <= FILES - share.reserve

                seen = checkpoint_written_at(victim)
                assert set(create(admin, *(f"topic-{number}" for number in range(20)))) == {0}
                victim.eventually(lambda: checkpoint_written_at(victim) > seen, "checkpoints are written")
            victim.eventually(lambda: is_served(victim), "new clients are served when others have left")
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        assert victim.log.count("connections refused") < 5
        victim.eventually(lambda: len(victim.files) < before_files + 64, "descriptors are closed")
        victim.memory_returns_to(before_mb)
        victim.check()


def test_a_connection_with_unread_responses_uses_one_descriptor(tmp_path: Path) -> None:
    clients = 40
    with Victim(tmp_path) as victim, WireClient(victim.address) as admin:
        assert create(admin, "large") == [0]
        for _ in range(8):
            admin.ask(produce_of("large", 0, batch(b"x" * 900_000), acks=1), 9)
        before = len(victim.files)
        slow = [WireClient(victim.address) for _ in range(clients)]
        with victim.bystander() as bystander:
            for client in slow:
                client.send(fetch_of("large", {0: 0}), 12)
            time.sleep(1)
            # The bystander and its topic have a few.
            assert clients <= len(victim.files) - before < clients + 20
        for client in slow:
            client.close()
        victim.eventually(lambda: len(victim.files) < before + 20, "their descriptors are closed")
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.check()


def test_at_max_connections_clients_wait_until_others_have_left(tmp_path: Path) -> None:
    with Victim(tmp_path, settings={"max.connections": 20}) as victim:
        with victim.bystander() as bystander:
            with Crowd(victim.address) as crowd:
                crowd.grow(50)
                assert crowd.refused == 0
                with WireClient(victim.address) as late:
                    late.send(ApiVersionsRequest(), 0)
                    used_s = victim.cpu_s
                    assert not late.is_closed(within_s=1)
                    # It does not look for clients over and over meanwhile.
                    assert victim.cpu_s - used_s < 0.7
                    crowd.close()
                    assert len(late.read_frame()) > 0
            assert is_served(victim)
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.check()


def test_one_address_cannot_exceed_its_connection_limit(tmp_path: Path) -> None:
    settings = {"max.connections.per.ip": 30, "max.connections.per.ip.overrides": f"{OTHER_HOST}:10"}
    with Victim(tmp_path, settings=settings) as victim:
        with victim.bystander() as bystander, Crowd(victim.address, host=OTHER_HOST) as crowd:
            crowd.grow(500)
            crowd.look(wait_ms=500)
            assert len(crowd) == 10
            assert is_served(victim)
        assert bystander.slowest_s < SERVED_WITHIN_S
        # All of them together, and not a line for each.
        assert victim.log.count("refused") < 5
        victim.check()


def test_above_the_creation_rate_clients_wait(tmp_path: Path) -> None:
    with Victim(tmp_path, settings={"max.connection.creation.rate": 5}) as victim:
        with victim.bystander() as bystander, Crowd(victim.address) as crowd:
            crowd.grow(55)
            started = time.monotonic()
            assert is_served(victim)
            waited_s = time.monotonic() - started
            assert crowd.refused == 0
        assert 0.5 < waited_s < 10
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.check()


@pytest.mark.scaled
def test_clients_that_die_while_they_are_accepted_leave_nothing(tmp_path: Path) -> None:
    count = scaled("BARNABAS_DYING", 2_000, 50_000)
    host, port = "127.0.0.1", 0
    with Victim(tmp_path, settings={"max.connections.per.ip": 200}) as victim:
        port = int(victim.address.rpartition(":")[2])
        assert is_served(victim)
        before_mb, before_files = victim.rss_mb, len(victim.files)
        with victim.bystander() as bystander:
            for _ in range(count):
                with socket.socket() as one:
                    # A reset instead of an end: the broker may not even see who it was.
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    one.setblocking(False)
                    one.connect_ex((host, port))
        victim.eventually(lambda: len(victim.files) <= before_files + 20, "their descriptors are closed")
        # Each of them was counted, and counted out: somebody else can have all the places.
        with Crowd(victim.address) as crowd:
            crowd.grow(200)
            assert len(crowd) == 200
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.memory_returns_to(before_mb)
        victim.check()


def limit_files(victim: Victim, soft: int) -> None:
    resource.prlimit(victim.pid, resource.RLIMIT_NOFILE, (soft, HARD))


def test_a_broker_at_its_descriptor_limit_refuses_clients_and_keeps_logs_running(tmp_path: Path) -> None:
    with Victim(tmp_path, settings=CHECKPOINTS) as victim:
        with victim.bystander() as bystander, WireClient(victim.address) as client:
            assert set(create(client, *(f"topic-{number}" for number in range(20)))) == {0}
            # Whatever is opened has to take the place of something else.
            limit_files(victim, victim.highest_file + 1)
            used_s = victim.cpu_s
            with Crowd(victim.address, timeout_s=5) as crowd:
                crowd.grow(100)
                victim.eventually(lambda: crowd.look() < 100, "some are closed")
                seen = checkpoint_written_at(victim)
                for number in range(100):
                    asked = produce_of(f"topic-{number % 20}", 0, batch(b"%d" % number), acks=1)
                    assert produced(client.ask(asked, 9)).error_code == 0
                assert create(client, "meanwhile") == [0]
                victim.eventually(lambda: checkpoint_written_at(victim) > seen, "checkpoints are written")
                # It does not look for clients over and over.
                time.sleep(2)
            assert victim.cpu_s - used_s < 4
            limit_files(victim, HARD)
            victim.eventually(lambda: is_served(victim), "new clients are served again")
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.check()


def test_running_out_of_descriptors_is_not_a_disk_failure(tmp_path: Path) -> None:
    with Victim(tmp_path, settings=CHECKPOINTS) as victim, WireClient(victim.address) as client:
        assert create(client, "before") == [0]
        # Far fewer than it has: nothing can be opened, not even after others were closed.
        limit_files(victim, 8)
        asked = CreateTopicsRequest(topics=[new_topic("meanwhile", 1, {})], timeout_ms=TIMEOUT_MS)
        with WireClient(victim.address) as other:
            other.send(asked, 5)
            codes = set()
            for number in range(100):
                answer = client.ask(produce_of("before", 0, batch(b"%d" % number), acks=1), 9)
                codes.add(produced(answer).error_code)
                time.sleep(0.02)
        assert codes <= {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}
        assert "Too many open files" in victim.log
        limit_files(victim, HARD)

        victim.eventually(lambda: is_served(victim), "new clients are served again")
        assert create(client, "after") == [0]
        for topic in ("before", "after"):
            answer = client.ask(produce_of(topic, 0, batch(b"x"), acks=1), 9)
            assert produced(answer).error_code == 0
        seen = checkpoint_written_at(victim)
        victim.eventually(lambda: checkpoint_written_at(victim) > seen, "checkpoints are written")
        assert "log directory failed" not in victim.log
        victim.check()
