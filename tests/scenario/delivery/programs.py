"""The programs of the guide to delivery, as they stand there, and one life of such a program."""

import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "delivery.md"
PROGRAMS = dict(re.findall(r"^```python (\w+\.py)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL))

WAIT_S_MAX = 60.0
# A moment is to be hit, or an end is waited for.
LOOK_SOON_S = 0.001
LOOK_LATER_S = 0.02
# How often, and how long after its start, a life is ended before it has done anything that can be seen.
EARLY = 0.2
EARLY_S_MAX = 1.0
# How long after a line: several batches take less.
LATER_S_MAX = 0.03


class Life:
    """A program in a process of its own, from its start to its end."""

    def __init__(self, program: str, arguments: tuple[str, ...], said: Path) -> None:
        self._said = said
        self._complaints = said.with_suffix(".err")
        with said.open("wb") as out, self._complaints.open("wb") as err:
            command = [sys.executable, "-W", "error", "-c", program, *arguments]
            self._process = subprocess.Popen(command, stdout=out, stderr=err)

    @property
    def lines(self) -> list[str]:
        """What it has printed. A line that the kill cut off was not printed."""
        whole, _, _ = self._said.read_text().rpartition("\n")
        return whole.splitlines()

    @property
    def complaints(self) -> str:
        return self._complaints.read_text()

    def wait_until(self, is_so: Callable[[], bool], *, look_again_s: float = LOOK_LATER_S) -> None:
        """It has to live until then."""
        deadline = monotonic() + WAIT_S_MAX
        while not is_so():
            assert not self.has_ended, f"it ended by itself:\n{self.complaints}"
            assert monotonic() < deadline, f"{self.lines[-3:]} is all it said:\n{self.complaints}"
            sleep(look_again_s)

    def live_on(self, rng: random.Random, lines_max: int, *, early: float = EARLY) -> None:
        """Until a random moment: now and then at its beginning, else soon after one of its first lines."""
        if rng.random() < early:
            sleep(rng.uniform(0, EARLY_S_MAX))
            return
        lines = rng.randint(1, lines_max)
        self.wait_until(lambda: len(self.lines) >= lines, look_again_s=LOOK_SOON_S)
        sleep(rng.uniform(0, LATER_S_MAX))

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(WAIT_S_MAX)

    def pause(self) -> None:
        """It does not know that it stands still, and believes what it believed before when it goes on."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def code(self) -> int:
        """How it ended by itself."""
        return self._process.wait(WAIT_S_MAX)
