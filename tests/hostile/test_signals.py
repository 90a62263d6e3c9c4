"""Signals: the broker ends within its timeout whatever it is doing, and keeps what it acknowledged."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.cli.serving.signals import ONE_PRESS_S
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
from barnabas.protocol.messages.cluster import MetadataRequest
from barnabas.protocol.messages.topics import CreateTopicsRequest
from support.hostile.victim import SERVED_WITHIN_S, Victim
from support.log.stuck_files import stuck
from support.process.processes import Running, started
from support.scale import scaled
from support.wire.client import WireClient
from support.wire.requests import (
    TIMEOUT_MS,
    batch,
    fetch_of,
    fetched,
    new_topic,
    produce_of,
    produced,
    records_of,
)

# What a test allows beside the time that the broker has: interpreted code, two busy cores.
SLACK_S = 5.0
STOP_TIMEOUT_S = 2
# A clean stop without anybody who holds it up.
PROMPT_S = 5.0
RECORD = b"x" * 100


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def err(tmp_path: Path) -> Path:
    return tmp_path / "stderr.txt"


def up(data: Path, *more: str) -> list[str]:
    return ["up", "--dir", str(data), "--port", "0", "--stop-timeout", str(STOP_TIMEOUT_S), *more]


def create(client: WireClient, *names: str) -> None:
    topics = [new_topic(name, 1, {}) for name in names]
    client.ask(CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS), 5)


def ended_within(process: "subprocess.Popen[bytes]", seconds: float) -> tuple[int, float]:
    """Return the exit code and the time that the stop took."""
    begun = time.monotonic()
    code = process.wait(seconds)
    return code, time.monotonic() - begun


def no_traceback(text: str) -> None:
    assert "Traceback" not in text, text[-3000:]
    assert "Exception" not in text, text[-3000:]


@contextmanager
def unread(data: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a broker whose stderr is never read: the first log line after the pipe is full blocks it."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    words = [sys.executable, "-m", "barnabas.cli.main", *up(data)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=writer)
    os.close(writer)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().decode().removeprefix("ready: ").strip()
        block(address)
        yield process
    finally:
        process.kill()
        process.communicate()
        os.close(reader)


def block(address: str) -> None:
    """Cause log lines until the broker no longer responds."""
    for _ in range(1_000):
        with WireClient(address, timeout_s=0.5) as client:
            try:
                client.ask(MetadataRequest(topics=[]), 12)
            except TimeoutError:
                return
            client.send_raw(b"\xff" * 8)
            client.is_closed(within_s=0.5)
    raise AssertionError("a full pipe blocks nobody")


def test_sighup_is_logged_and_ignored(tmp_path: Path) -> None:
    with Victim(tmp_path) as victim:
        with victim.bystander() as bystander:
            for _ in range(3):
                os.kill(victim.pid, signal.SIGHUP)
                time.sleep(0.2)
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        assert "signal ignored signal=SIGHUP" in victim.log
        victim.check()


def test_closing_the_terminal_stops_the_broker_cleanly(data: Path, err: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        command = 'exec "$@" 2>"$0"'
        words = [sys.executable, "-m", "barnabas.cli.main", *up(data)]
        os.execvp("sh", ["sh", "-c", command, str(err), *words])
    try:
        assert select.select([terminal], [], [], 30)[0]
        assert b"ready: " in os.read(terminal, 1000)
    finally:
        os.close(terminal)

    deadline = time.monotonic() + PROMPT_S
    while not (done := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)

    assert os.waitstatus_to_exitcode(done[1]) == 0
    assert "stopping signal=SIGHUP" in err.read_text()
    no_traceback(err.read_text())
    assert (data / ".kafka_cleanshutdown").exists()


def test_with_nohup_a_hangup_is_ignored_silently(data: Path, err: Path) -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        running = Running(err, *up(data))
    finally:
        signal.signal(signal.SIGHUP, previous)
    try:
        running.ready()
        running.process.send_signal(signal.SIGHUP)
        ended = running.stop()
    finally:
        running.process.kill()

    assert ended.code == 0
    assert "SIGHUP" not in ended.err


@pytest.mark.scaled
def test_clients_with_unfinished_requests_do_not_delay_the_stop(data: Path, err: Path) -> None:
    with started(err, *up(data)) as broker:
        [address] = broker.ready()
        clients = [WireClient(address) for _ in range(scaled("BARNABAS_CLIENTS", 20, 500))]
        create(clients[0], "orders")
        produced(clients[0].ask(produce_of("orders", 0, batch(RECORD), acks=1), 9))
        for kind, client in enumerate(clients):
            if kind % 4 == 0:
                # Waits for records for a minute.
                client.send(fetch_of("orders", {0: 1}, max_wait_ms=60_000, min_bytes=1), 12)
            elif kind % 4 == 1:
                # Half of a request.
                client.send_raw((1000).to_bytes(4, "big") + b"half")
            elif kind % 4 == 2:
                # Creates a topic of fifty partitions, and does not wait for it.
                client.send(FindCoordinatorRequest(key=f"group-{kind}", key_type=0), 3)
            else:
                # Takes no answer.
                for _ in range(100):
                    client.send(MetadataRequest(topics=None), 12)
        broker.process.send_signal(signal.SIGTERM)
        code, took_s = ended_within(broker.process, 30)
        for client in clients:
            client.close()

    assert code in (0, 1), broker.err[-3000:]
    assert took_s < STOP_TIMEOUT_S + SLACK_S
    no_traceback(broker.err)
    with started(err, *up(data)) as again, WireClient(again.ready()[0]) as client:
        assert len(records_of(fetched(client.ask(fetch_of("orders", {0: 0}), 12)))) == 1


@pytest.mark.soak
def test_a_busy_controller_does_not_delay_the_stop(data: Path, err: Path) -> None:
    count = scaled("BARNABAS_TOPICS", 300, 5_000)
    with started(err, *up(data)) as broker, WireClient(broker.ready()[0]) as client:
        topics = [new_topic(f"topic-{number}", 1, {}) for number in range(count)]
        client.send(CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS), 5)
        time.sleep(0.2)
        broker.process.send_signal(signal.SIGTERM)
        code, took_s = ended_within(broker.process, 30)

    assert code in (0, 1), broker.err[-3000:]
    assert took_s < STOP_TIMEOUT_S + SLACK_S
    no_traceback(broker.err)


def test_a_blocked_broker_ends_at_the_stop_timeout(data: Path) -> None:
    with unread(data) as process:
        process.send_signal(signal.SIGTERM)
        code, took_s = ended_within(process, 30)

    assert code == 1
    assert STOP_TIMEOUT_S - 0.5 < took_s < STOP_TIMEOUT_S + SLACK_S


def test_a_second_signal_ends_even_a_blocked_broker_at_once(data: Path) -> None:
    with unread(data) as process:
        process.send_signal(signal.SIGTERM)
        time.sleep(2 * ONE_PRESS_S)
        process.send_signal(signal.SIGINT)
        code, took_s = ended_within(process, 30)

    assert code == 1
    assert took_s < STOP_TIMEOUT_S - 0.5


def test_a_stop_with_a_disk_that_does_not_answer_ends_at_the_timeout(data: Path, err: Path) -> None:
    with started(err, *up(data)) as broker:
        with WireClient(broker.ready()[0]) as client:
            create(client, "orders")
            produced(client.ask(produce_of("orders", 0, batch(RECORD), acks=1), 9))
        with stuck(data / "recovery-point-offset-checkpoint.tmp"):
            broker.process.send_signal(signal.SIGTERM)
            code, took_s = ended_within(broker.process, 30)

    assert code == 1
    assert STOP_TIMEOUT_S - 0.5 < took_s < STOP_TIMEOUT_S + SLACK_S
    assert f"stop timed out, ended at once timeout_s={STOP_TIMEOUT_S}" in broker.err
    no_traceback(broker.err)
    assert not (data / ".kafka_cleanshutdown").exists()
    with started(err, *up(data)) as again, WireClient(again.ready()[0]) as client:
        assert len(records_of(fetched(client.ask(fetch_of("orders", {0: 0}), 12)))) == 1


def test_a_start_that_waits_for_the_disk_can_be_stopped(data: Path, err: Path) -> None:
    with started(err, *up(data)) as broker:
        with WireClient(broker.ready()[0]) as client:
            create(client, "orders")
        assert broker.stop().code == 0
    with stuck(data / "orders-0" / "partition.metadata"), started(err, *up(data)) as broker:
        wait_for_log(broker, "controller active")
        time.sleep(0.5)
        broker.process.send_signal(signal.SIGTERM)
        code, took_s = ended_within(broker.process, 30)

    assert code == 0, broker.err
    assert took_s < PROMPT_S
    no_traceback(broker.err)
    with started(err, *up(data)) as broker:
        broker.ready()
        assert broker.stop().code == 0


def wait_for_log(broker: Running, text: str) -> None:
    deadline = time.monotonic() + 30
    while text not in broker.err:
        assert broker.process.poll() is None, broker.err
        assert time.monotonic() < deadline, broker.err
        time.sleep(0.02)


@pytest.mark.soak
def test_the_recovery_of_a_long_log_can_be_stopped_and_begun_again(data: Path, err: Path) -> None:
    batches = scaled("BARNABAS_BATCHES", 300, 20_000)
    with started(err, *up(data)) as broker:
        with WireClient(broker.ready()[0]) as client:
            create(client, "orders")
            value = batch(*[RECORD] * 100)
            for _ in range(batches):
                produced(client.ask(produce_of("orders", 0, value, acks=1), 9))
        broker.process.kill()
        broker.process.wait()

    for pause_s in (0.0, 0.1):
        with started(err, *up(data)) as broker:
            wait_for_log(broker, "controller active")
            time.sleep(pause_s)
            broker.process.send_signal(signal.SIGTERM)
            code, took_s = ended_within(broker.process, 30)
        assert code == 0, broker.err
        assert took_s < STOP_TIMEOUT_S + SLACK_S
        no_traceback(broker.err)

    with started(err, *up(data)) as broker, WireClient(broker.ready()[0]) as client:
        answer = fetched(client.ask(fetch_of("orders", {0: 0}), 12))
        assert answer.high_watermark == 100 * batches


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_at_any_moment_of_the_start_ends_it_quietly(
    number: signal.Signals, data: Path, err: Path
) -> None:
    tries = scaled("BARNABAS_TRIES", 2, 100)
    # From the first line of Python to a moment after `ready:`.
    longest_s = 1.2
    for number_of_try in range(tries):
        with started(err, *up(data)) as broker:
            time.sleep(0.15 + longest_s * number_of_try / tries)
            broker.process.send_signal(number)
            code, took_s = ended_within(broker.process, 30)
        # Before there is anything to stop, the signal does what it does to any program.
        assert code in (0, -number, 130), broker.err
        assert took_s < STOP_TIMEOUT_S + SLACK_S
        no_traceback(broker.err)
    with started(err, *up(data)) as broker:
        broker.ready()
        assert broker.stop().code == 0


@pytest.mark.soak
def test_a_suspended_broker_continues_when_resumed(tmp_path: Path) -> None:
    session = {"broker.session.timeout.ms": 500, "broker.heartbeat.interval.ms": 100}
    with Victim(tmp_path, settings=session) as victim:
        for number in (signal.SIGSTOP, signal.SIGTSTP):
            os.kill(victim.pid, number)
            # Longer than its session at the controller, which slept as well.
            time.sleep(1)
            os.kill(victim.pid, signal.SIGCONT)
            with victim.bystander() as bystander:
                time.sleep(0.2)
            assert bystander.error is None
            assert bystander.slowest_s < SERVED_WITHIN_S
        victim.check()


STREAMS = {
    "stdout closed": 'exec "$@" >&- 2>"$0"',
    "all closed": 'exec "$@" <&- >&- 2>&-',
    "nobody reads stdout": '("$@" 2>"$0"; echo $? >"$0.code") | true',
    "nobody reads stderr": '("$@" 2>&1 >/dev/null; echo $? >"$0.code") | true',
    "stderr full": 'exec "$@" 2>/dev/full',
}


@pytest.mark.parametrize("what", STREAMS)
def test_a_broker_serves_with_closed_standard_streams(
    what: str, data: Path, err: Path, tmp_path: Path
) -> None:
    broker = Victim(tmp_path / "port only")
    words = ["up", "--dir", str(data), "--port", str(broker.port), "--stop-timeout", str(STOP_TIMEOUT_S)]
    shell = ["sh", "-c", STREAMS[what], str(err), sys.executable, "-m", "barnabas.cli.main", *words]
    process = subprocess.Popen(shell, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with reached(broker.address) as client:
            create(client, "orders")
            for _ in range(20):
                produced(client.ask(produce_of("orders", 0, batch(RECORD), acks=1), 9))
                with WireClient(broker.address) as bad:
                    # A line of the log.
                    bad.send_raw(b"\xff" * 8)
                    assert bad.is_closed()
            [pid] = pids_of(data)
            assert not {0, 1, 2} & {
                int(number) for number in os.listdir(f"/proc/{pid}/fd") if str(data) in where(pid, number)
            }
            os.kill(pid, signal.SIGTERM)
        process.wait(30)
    finally:
        for pid in pids_of(data):
            os.kill(pid, signal.SIGKILL)
    code_file = err.with_name(err.name + ".code")
    code = int(code_file.read_text()) if code_file.exists() else process.returncode
    assert code == 0
    assert (data / ".kafka_cleanshutdown").exists()
    assert str(RECORD).encode() not in (err.read_bytes() if err.exists() else b"")
    if err.exists():
        no_traceback(err.read_text())


def reached(address: str) -> WireClient:
    deadline = time.monotonic() + 30
    while True:
        try:
            return WireClient(address)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, "nobody listens"
            time.sleep(0.05)


def pids_of(data: Path) -> list[int]:
    """The brokers on this directory; the shells around them have the words as well."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if os.fsencode(data) in words and words[0] != b"sh":
            found.append(int(entry.name))
    return found


def where(pid: int, number: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{number}")
    except FileNotFoundError:
        return ""
