"""Do records go from the page cache to the socket without passing through the broker's memory?

strace writes down every call by which a broker can read a file or write to a socket while a client consumes 1
GB of 1 kB messages, and what each call returned. What did not go out by sendfile was copied.

Expected cost of ours: one sendfile for every megabyte or so that a fetch asks for, and answers without
records of some hundred bytes each.
"""

import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from broker_pair import GB, MB, Broker, topic
from broker_rows import Answer, less_is_better, more_is_better
from broker_scene import Scene

SIZE = 1000
MESSAGES = 1_000_000
QUICK_MESSAGES = 100_000
SENDS = ("sendto", "sendmsg", "write", "writev")
READS = ("pread64", "preadv", "preadv2", "read", "readv")
ZERO_COPY = "sendfile"
ATTACHED_WITHIN_S = 10.0
# With or without the first half of the call: another thread may have got in between.
CALL = re.compile(r"^\d+\s+(?:<\.\.\. )?(\w+)(?: resumed>|\().* = (-?\d+)")


class NoStrace(Exception):
    """System calls cannot be counted here."""


@dataclass(frozen=True, slots=True)
class Calls:
    """How often each call was made, and the bytes it moved, while so many bytes were consumed."""

    counts: Counter[str]
    moved: Counter[str]
    consumed: int

    def sent_copied(self) -> int:
        return sum(self.moved[name] for name in SENDS)

    def read_copied(self) -> int:
        return sum(self.moved[name] for name in READS)

    def share(self) -> float:
        sent = self.moved[ZERO_COPY]
        return 100 * sent / max(1, sent + self.sent_copied())


def sendfile_rows(scene: Scene) -> Iterator[Answer]:
    ours, theirs = scene.pair.alternate(lambda broker: measure(scene, broker), 1, warm_up=0)
    mine, other = ours[0], theirs[0]
    yield more_is_better("sent by sendfile", [mine.share()], [other.share()], "%", 1.0)
    for question, unit, scale, value in (
        ("sendfile calls", "calls/GB", 1.0, lambda one: one.counts[ZERO_COPY]),
        ("sent through user space", "MB/GB", MB, Calls.sent_copied),
        ("read through user space", "MB/GB", MB, Calls.read_copied),
    ):
        a, b = (value(one) / scale / (one.consumed / GB) for one in (mine, other))
        yield less_is_better(question, [a], [b], unit, may_be_zero=True)


def measure(scene: Scene, broker: Broker) -> Calls:
    count = scene.sized(MESSAGES, QUICK_MESSAGES)
    with topic(broker, "sendfile") as name:
        scene.load.produce(broker.address, name, count=count, size=SIZE, partition=0)
        with traced(broker, scene.directory) as trace:
            done = scene.load.consume(broker.address, name, partitions=1, count=count)
        return counted(trace, done.bytes)


class traced:
    """The file that has the calls of a broker within a block."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        if shutil.which("strace") is None:
            raise NoStrace("strace is not installed")
        self._broker = broker
        self._output = directory / "strace.txt"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Path:
        names = ",".join((ZERO_COPY, *SENDS, *READS))
        command = ["strace", "-f", "-qq", "-s", "0", "-e", f"trace={names}", "-o", str(self._output)]
        self._process = subprocess.Popen(
            [*command, "-p", str(self._broker.pid)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + ATTACHED_WITHIN_S
        while not self._is_attached():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._process.kill()
                raise NoStrace(f"strace cannot attach: {self._process.communicate()[1]!r}")
            time.sleep(0.05)
        return self._output

    def _is_attached(self) -> bool:
        """Whether the last thread has a tracer: strace takes them one by one."""
        tasks = Path(f"/proc/{self._broker.pid}/task")
        return all("TracerPid:\t0\n" not in (task / "status").read_text() for task in tasks.iterdir())

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        # It lets go of the broker and ends.
        self._process.send_signal(signal.SIGINT)
        self._process.communicate()


def counted(trace: Path, consumed: int) -> Calls:
    calls = Calls(Counter(), Counter(), consumed)
    with trace.open(errors="replace") as lines:
        for line in lines:
            found = CALL.match(line)
            if found is not None:
                calls.counts[found[1]] += 1
                calls.moved[found[1]] += max(0, int(found[2]))
    return calls
