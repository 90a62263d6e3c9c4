"""The console tools as processes: signals, pipes, terminals, and topics that grow under a reader."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.process.our_broker import OurBroker
from support.process.record_runs import RecordTools

TIMEOUT_S = 30
PROGRAM = (sys.executable, "-m", "barnabas.cli.main")


@contextmanager
def running(*words: str, **streams: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a tool; it is killed at the end of the block."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    # Unbuffered, because select() does not see a line in our buffer.
    # The child's output is buffered, as for a user.
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    with subprocess.Popen([*PROGRAM, *words], bufsize=0, env=environment, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], TIMEOUT_S)[0], "nothing is printed"
    return process.stdout.readline()


def read_until(descriptor: int, wanted: bytes) -> bytes:
    """Read from a terminal until it shows this text."""
    seen = b""
    deadline = time.monotonic() + TIMEOUT_S
    while wanted not in seen:
        assert select.select([descriptor], [], [], deadline - time.monotonic())[0], seen
        seen += os.read(descriptor, 4096)
    return seen


@pytest.fixture(scope="module")
def tools(broker: OurBroker) -> RecordTools:
    tools = RecordTools(broker.address)
    assert tools("topics", "--create", "--topic", "t").code == 0
    assert tools.produce("t", b"first\n").code == 0
    return tools


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_consumer_cleanly(tools: RecordTools, number: signal.Signals, code: int) -> None:
    words = ["--bootstrap-server", tools.address, "--topic", "t", "--from-beginning"]
    with running("console-consumer", *words, "--enable-systest-events") as consumer:
        assert first_line(consumer) == b"first\n"

        consumer.send_signal(number)
        out, err = consumer.communicate(timeout=TIMEOUT_S)

    assert (consumer.returncode, out, err) == (
        code,
        b"shutdown_complete\n",
        b"Processed a total of 1 messages\n",
    )


def test_a_signal_ends_the_producer_after_its_lines_are_delivered(tools: RecordTools) -> None:
    assert tools("topics", "--create", "--topic", "late").code == 0
    # linger.ms is an hour, so only the shutdown can have sent this record.
    linger = ["--timeout", "3600000", "--command-property", "delivery.timeout.ms=4000000"]
    words = ["--bootstrap-server", tools.address, "--topic", "late", *linger]
    with running("console-producer", *words, "--reader-property", "parse.key=true") as producer:
        assert producer.stdin is not None
        producer.stdin.write(b"k\tv\ncut\toff")
        producer.stdin.flush()
        _wait_until_read(producer)

        producer.send_signal(signal.SIGTERM)
        code = producer.wait(TIMEOUT_S)

    assert code == 143
    assert tools.consume("late", 1).out == b"v\n"
    assert tools("get-offsets", "--topic", "late").lines == ["late:0:1"]


def _wait_until_read(process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has read all of its standard input."""
    import array
    import fcntl
    import termios

    assert process.stdin is not None
    left = array.array("i", [1])
    deadline = time.monotonic() + TIMEOUT_S
    while left[0] and time.monotonic() < deadline:
        time.sleep(0.01)
        fcntl.ioctl(process.stdin, termios.FIONREAD, left)
    assert left[0] == 0, "it does not read"


def test_a_record_is_printed_as_soon_as_it_is_produced(tools: RecordTools) -> None:
    words = ["--bootstrap-server", tools.address, "--topic", "t", "--from-beginning"]
    with running("console-consumer", *words) as consumer:
        assert first_line(consumer) == b"first\n"

        # One record at a time: a buffered line would never arrive.
        for number in range(3):
            assert tools.produce("t", b"%d\n" % number).code == 0
            assert first_line(consumer) == b"%d\n" % number


def test_a_reader_that_leaves_early_ends_the_consumer(tools: RecordTools) -> None:
    assert tools("topics", "--create", "--topic", "long").code == 0
    assert tools.produce("long", b"x" * 100 * 1000 + b"\n" + b"y\n" * 2000).code == 0
    words = ["--bootstrap-server", tools.address, "--topic", "long", "--from-beginning"]
    with running("console-consumer", *words) as consumer:
        assert consumer.stdout is not None
        consumer.stdout.read(1)
        consumer.stdout.close()
        code = consumer.wait(TIMEOUT_S)
        assert consumer.stderr is not None
        lines = consumer.stderr.read().decode().splitlines()

    assert code == 0
    assert lines[0] == "Unable to write to standard out, closing consumer."
    assert lines[1].startswith("Processed a total of ")
    assert len(lines) == 2


def test_new_partitions_are_read_from_their_start(tools: RecordTools) -> None:
    assert tools("topics", "--create", "--topic", "growing").code == 0
    age = ["--command-property", "metadata.max.age.ms=100"]
    words = ["--bootstrap-server", tools.address, "--topic", "growing", *age]
    # The consumer starts at the log end, so it reads only new records, and new partitions completely.
    with running("console-consumer", *words) as consumer:
        while not _has_said_something(consumer):
            tools.produce("growing", b"old\n")

        assert tools("topics", "--alter", "--topic", "growing", "--partitions", "4").code == 0
        keys = b"".join(b"k%d\t%d\n" % (number, number) for number in range(20))
        sent = tools.produce("growing", keys, "--reader-property", "parse.key=true", "--json")
        assert {each["partition"] for each in sent.objects} == {0, 1, 2, 3}
        lines: set[bytes] = set()
        while len(lines) < 20:
            lines |= {first_line(consumer)} - {b"old\n"}

    assert lines == {b"%d\n" % number for number in range(20)}


def _has_said_something(process: subprocess.Popen[bytes]) -> bool:
    return bool(select.select([process.stdout], [], [], 0.05)[0])


def test_new_matching_topics_are_read(tools: RecordTools) -> None:
    age = ["--command-property", "metadata.max.age.ms=100"]
    words = ["--bootstrap-server", tools.address, "--include", "new-.*", *age]
    assert tools("topics", "--create", "--topic", "new-a").code == 0
    with running("console-consumer", *words, "--from-beginning") as consumer:
        tools.produce("new-a", b"a\n")
        assert first_line(consumer) == b"a\n"

        assert tools("topics", "--create", "--topic", "new-b").code == 0
        tools.produce("new-b", b"b\n")

        assert first_line(consumer) == b"b\n"


def test_a_terminal_gets_a_prompt_for_every_line(tools: RecordTools) -> None:
    ours, theirs = pty.openpty()
    words = ["--bootstrap-server", tools.address, "--topic", "t"]
    try:
        with running("console-producer", *words, stdin=theirs, stdout=theirs) as producer:
            os.close(theirs)
            read_until(ours, b">")
            os.write(ours, b"typed\n")
            # The terminal echoes the line; the prompt for the next line follows.
            shown = read_until(ours, b"\n>")
            os.write(ours, b"\x04")
            code = producer.wait(TIMEOUT_S)
    finally:
        os.close(ours)

    assert shown == b"typed\r\n>"
    assert code == 0


def test_progress_is_shown_at_a_terminal_and_not_in_a_pipe(tools: RecordTools) -> None:
    words = [
        "--bootstrap-server",
        tools.address,
        "--topic",
        "t",
        "--num-records",
        "200",
        "--throughput",
        "400",
    ]
    ours, theirs = pty.openpty()
    try:
        with running("producer-perf-test", *words, "--record-size", "10", stderr=theirs) as measuring:
            os.close(theirs)
            shown = read_until(ours, b" of 200 records (")
            out, _ = measuring.communicate(timeout=TIMEOUT_S)
    finally:
        os.close(ours)
    with running("producer-perf-test", *words, "--record-size", "10") as measuring:
        _, err = measuring.communicate(timeout=TIMEOUT_S)

    assert shown.startswith(b"\r\x1b[K")
    assert out.startswith(b"200 records sent, ")
    assert err == b""


def test_help_needs_no_client() -> None:
    program = (
        "import sys\nfrom barnabas.cli.main import main\n"
        "try: main([sys.argv[1], '--help'])\nexcept SystemExit: pass\n"
        "heavy = {'asyncio', 'barnabas.client', 'barnabas.server', 'pyarrow'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    for name in ("console-producer", "console-consumer", "producer-perf-test", "consumer-perf-test"):
        subprocess.run([sys.executable, "-c", program, name], check=True, stdout=subprocess.DEVNULL)


def test_the_console_tools_import_neither_the_server_nor_arrow(tools: RecordTools) -> None:
    program = (
        "import sys\nfrom barnabas.cli.main import main\n"
        "code = main(sys.argv[1:])\n"
        "heavy = [name for name in sys.modules if name.startswith(('barnabas.server', 'barnabas.storage',"
        " 'pyarrow', 'uvloop'))]\n"
        "assert code == 0 and not heavy, heavy\n"
    )
    server = ["--bootstrap-server", tools.address, "--topic", "t"]
    for words in (
        ["console-producer", *server],
        ["console-consumer", *server, "--from-beginning", "--max-messages", "1"],
    ):
        subprocess.run(
            [sys.executable, "-c", program, *words],
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
        )
