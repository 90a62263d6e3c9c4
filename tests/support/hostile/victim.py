"""A broker under attack, in a process of its own, and the client that must be served meanwhile.

    with Victim(tmp_path) as victim, victim.bystander() as bystander:
        attack(victim.address)
    assert bystander.slowest_s < SERVED_WITHIN_S
    victim.check()          # it stops cleanly, and its log has no traceback

The bystander is another process, so that the attack's own work in this one does not slow it down.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.process.our_broker import OurBroker

# How long a well-behaved client may have to wait for a response while another attacks the broker.
SERVED_WITHIN_S = 1.0
# How much more memory than before may still be in use when an attack is over.
MEMORY_RATIO_MAX = 1.2
_POLL_S = 0.1
_MEMORY = re.compile(r"VmRSS:\s+(\d+) kB")


class Bystander:
    """What the second client saw, once its block has ended."""

    requests = 0
    slowest_s = 0.0
    error: str | None = None


class Victim(OurBroker):
    """`with` starts it and kills what is left of it. `files_max` is its RLIMIT_NOFILE, soft and hard."""

    def __init__(
        self, root: Path, *, files_max: int | None = None, settings: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(root, settings=settings)
        self._files_max = files_max

    def __enter__(self) -> "Victim":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _limited(self) -> list[str]:
        # In the broker's own process, because a hard limit cannot be raised again.
        return [] if self._files_max is None else ["sh", "-c", f'ulimit -n {self._files_max}; exec "$0" "$@"']

    # What it uses

    @property
    def rss_mb(self) -> float:
        found = _MEMORY.search(Path(f"/proc/{self.pid}/status").read_text())
        assert found is not None
        return int(found.group(1)) / 1024

    @property
    def files(self) -> list[str]:
        """What its descriptors are, deleted files among them."""
        found = []
        for number in os.listdir(f"/proc/{self.pid}/fd"):
            try:
                found.append(os.readlink(f"/proc/{self.pid}/fd/{number}"))
            except FileNotFoundError:
                continue
        return found

    @property
    def highest_file(self) -> int:
        """The highest number of a descriptor that is open."""
        return max(map(int, os.listdir(f"/proc/{self.pid}/fd")))

    @property
    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def eventually(self, holds: Callable[[], object], what: str, *, within_s: float = 30) -> None:
        """Wait until something holds of a broker that must not end meanwhile."""
        deadline = time.monotonic() + within_s
        while not holds():
            assert self.is_running, f"the broker ended:\n{self.log[-3000:]}"
            assert time.monotonic() < deadline, f"not within {within_s:.0f} s: {what}\n{self.log[-2000:]}"
            time.sleep(_POLL_S)

    def memory_returns_to(self, before_mb: float, *, within_s: float = 30) -> None:
        most_mb = before_mb * MEMORY_RATIO_MAX
        deadline = time.monotonic() + within_s
        while (now_mb := self.rss_mb) > most_mb:
            assert time.monotonic() < deadline, f"{now_mb:.0f} MB are used, {before_mb:.0f} MB before"
            time.sleep(_POLL_S)

    # How it is

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def log(self) -> str:
        return self.output.read_text()

    def check(self) -> None:
        """Stop it: it must end cleanly, with exit code 0, and no line of its log may be a traceback."""
        assert self.is_running, f"the broker ended:\n{self.log[-3000:]}"
        self.stop()
        assert "Traceback" not in self.log, self.log[self.log.index("Traceback") - 500 :][:3000]

    @contextmanager
    def bystander(self) -> Iterator[Bystander]:
        """A client that produces and fetches all the time, until the end of the block."""
        command = [sys.executable, "-m", "support.hostile.bystander", self.address]
        path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        seen = Bystander()
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "served\n", "the bystander is not served before the attack"
            yield seen
            told, _ = process.communicate(timeout=120)
            for name, value in json.loads(told).items():
                setattr(seen, name, value)
        finally:
            process.kill()
            process.communicate()
