"""Processes with a broker inside: their exit, their forks, and what they leave behind."""

from pathlib import Path

import pytest

from barnabas.testing.places import PREFIX
from support.kit import Ended, python


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """The directory of brokers with storage="disk" in the child processes."""
    found = tmp_path / "scratch"
    found.mkdir()
    return found


def run(tmp_path: Path, scratch: Path, program: str) -> Ended:
    file = tmp_path / "program.py"
    file.write_text(program)
    return python(str(file), cwd=tmp_path, environment={"TMPDIR": str(scratch)})


def test_a_process_that_exits_without_stop_removes_its_directory(tmp_path: Path, scratch: Path) -> None:
    ended = run(
        tmp_path,
        scratch,
        """
import socket
from barnabas.testing import Broker
brokers = [Broker(storage="disk", topics=["orders"]).start() for _ in range(3)]
connected = socket.create_connection(("127.0.0.1", brokers[0].port))
print(brokers[0].directory)
""",
    )

    assert (ended.code, ended.err) == (0, "")
    assert Path(ended.out.strip()).parents[1] == scratch
    assert list(scratch.iterdir()) == []


def test_a_process_that_fails_without_stop_leaves_no_directory(tmp_path: Path, scratch: Path) -> None:
    ended = run(
        tmp_path,
        scratch,
        """
from barnabas.testing import Broker
broker = Broker(storage="disk").start()
raise SystemExit("the test went wrong")
""",
    )

    assert (ended.code, ended.err) == (1, "the test went wrong\n")
    assert list(scratch.iterdir()) == []


def test_the_next_start_removes_directories_of_killed_processes(tmp_path: Path, scratch: Path) -> None:
    killed = run(
        tmp_path,
        scratch,
        """
import os, signal
from barnabas.testing import Broker
broker = Broker(storage="disk").start()
os.kill(os.getpid(), signal.SIGKILL)
""",
    )
    assert killed.code == -9
    assert [path.name.startswith(PREFIX) for path in scratch.iterdir()] == [True]

    run(
        tmp_path,
        scratch,
        """
from barnabas.testing import Broker
with Broker(storage="disk"):
    pass
""",
    )

    assert list(scratch.iterdir()) == []


def test_a_fork_has_no_broker_and_removes_nothing(tmp_path: Path, scratch: Path) -> None:
    ended = run(
        tmp_path,
        scratch,
        """
import os, sys, warnings
from barnabas.testing import Broker, StartedElsewhere
# Python 3.12 and later warn of a fork where there are threads.
warnings.simplefilter("ignore", DeprecationWarning)
broker = Broker(storage="disk").start()
child = os.fork()
if child == 0:
    for use in (broker.stop, broker.restart, lambda: broker.create_topic("mine")):
        try:
            use()
        except StartedElsewhere as refused:
            assert str(os.getppid()) in str(refused) and str(os.getpid()) in str(refused)
        else:
            os._exit(3)
    with Broker(storage="disk", topics=["mine"]) as own:
        assert own.bootstrap != broker.bootstrap
    # A normal exit, with all finalizers.
    del broker
    sys.exit(7)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 7, status
broker.create_topic("still-served")
assert broker.directory.exists()
broker.stop()
""",
    )

    assert (ended.code, ended.err) == (0, "")
    assert list(scratch.iterdir()) == []


def test_a_forked_worker_can_use_the_address(tmp_path: Path, scratch: Path) -> None:
    ended = run(
        tmp_path,
        scratch,
        """
import multiprocessing
from barnabas.testing import Broker

def work(bootstrap):
    from confluent_kafka import Producer
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("orders", b"from the fork")
    return producer.flush(30)

with Broker(storage="disk", topics=["orders"]) as broker:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(work, [broker.bootstrap]) == 0
    segment = broker.directory / "orders-0" / "00000000000000000000.log"
    assert b"from the fork" in segment.read_bytes()
""",
    )

    assert (ended.code, ended.err) == (0, "")


def test_ctrl_c_during_the_start_stops_it(tmp_path: Path, scratch: Path) -> None:
    ended = run(
        tmp_path,
        scratch,
        """
import _thread, signal, sys, threading, time
from barnabas.testing import Broker

# Whoever runs the tests may have been told to ignore it, and that is passed on.
signal.signal(signal.SIGINT, signal.default_int_handler)

importing, interrupted = threading.Event(), threading.Event()

class SlowImport:
    # The thread has a server to import, and it takes as long as it takes to interrupt the caller, who waits.
    def find_spec(self, name, path=None, target=None):
        if name == "barnabas.server.broker":
            importing.set()
            interrupted.wait(60)

def interrupt():
    importing.wait(60)
    time.sleep(0.05)
    _thread.interrupt_main()
    interrupted.set()

sys.meta_path.insert(0, SlowImport())
threading.Thread(target=interrupt).start()
broker = Broker(storage="disk")
try:
    broker.start()
except KeyboardInterrupt:
    print([one.name for one in threading.enumerate() if one.name.startswith("barnabas")])
""",
    )

    assert ended == Ended(0, "[]\n", "")
    assert list(scratch.iterdir()) == []


def test_the_package_and_the_plugin_import_little(tmp_path: Path) -> None:
    ended = python(
        "-c",
        "import sys; before = set(sys.modules); import barnabas.testing; "
        "print(*sorted(set(sys.modules) - before))",
        cwd=tmp_path,
    )
    names = ended.out.split()
    assert [name for name in names if name.startswith("barnabas")] == ["barnabas", "barnabas.testing"]
    assert not {"asyncio", "socket", "logging", "dataclasses", "threading"} & set(names)

    ended = python(
        "-c",
        "import sys, pytest; before = set(sys.modules); import barnabas.testing.plugin; "
        "print(*sorted(set(sys.modules) - before))",
        cwd=tmp_path,
    )
    assert ended.out.split() == ["barnabas", "barnabas.testing", "barnabas.testing.plugin"]


def test_a_process_without_spare_threads_gets_an_error_and_no_directory(
    tmp_path: Path, scratch: Path
) -> None:
    ended = run(
        tmp_path,
        scratch,
        """
import asyncio, threading
from barnabas.testing import Broker

def refused(*_, **__):
    raise RuntimeError("can't start new thread")

# The first is what Python before 3.13 calls.
threading._start_new_thread = threading._start_joinable_thread = refused
for start in (Broker(storage="disk").start, lambda: asyncio.run(Broker(storage="disk").__aenter__())):
    try:
        start()
    except RuntimeError as error:
        print(error)
""",
    )

    assert ended == Ended(0, "can't start new thread\n" * 2, "")
    assert list(scratch.iterdir()) == []
