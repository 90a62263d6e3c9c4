"""What every benchmark shares: the command line, fair timing, and the report.

    options = parse_options(__doc__)
    machine(options)                                    # prints where and on what this ran
    timings = interleave({"ours": f, "theirs": g}, rounds=options.rounds)
    row = Row.of_times("decode 100 B", "ours", "aiokafka", timings, work=10_000, unit="M records/s")
    report([row], options)                              # the table, and the JSON file if asked for

A ratio above 1 always means that Barnabas is better. A Row of zero is refused with NothingMeasured: a run
that moved nothing has not answered its question.
"""

import argparse
import gc
import json
import math
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from barnabas.base.memory import keep_freed_memory

ROUNDS = 31
QUICK_ROUNDS = 5
TURN_S = 0.02


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for."""

    quick: bool
    json: Path | None
    rounds: int
    fresh: bool


def parse_options(about: str | None) -> Options:
    """Parse [--quick] [--json FILE] [--fresh], the arguments of every benchmark."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds: shows that it runs, not how fast")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    parser.add_argument(
        "--fresh", action="store_true", help="leave the allocator as a process has it that sets nothing up"
    )
    found = parser.parse_args()
    if not found.fresh:
        keep_freed_memory()
    return Options(found.quick, found.json, QUICK_ROUNDS if found.quick else ROUNDS, found.fresh)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds that one run took, over all rounds."""

    median: float
    p99: float


def interleave(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Timing]:
    """Time the runs in turns, so that a slow moment of the machine hits all of them alike.

    A short run is repeated until its turn has lasted TURN_S, and the mean of the turn counts: else the
    short ones would be measured with the caches full of what the long ones before them left. So these are
    the figures of steady work; whoever decodes once in a while sees less.
    """
    repeats = {name: max(1, round(TURN_S / _seconds(run, 2))) for name, run in runs.items()}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, run in runs.items():
                seconds[name].append(_seconds(run, repeats[name]))
    finally:
        gc.enable()
    return {name: Timing(median(took), _p99(took)) for name, took in seconds.items()}


def _seconds(run: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def _p99(took: list[float]) -> float:
    return sorted(took)[min(len(took) - 1, round(len(took) * 0.99))]


class NothingMeasured(Exception):
    """A figure that no run can have had: nothing was done, or the clock did not run."""

    def __init__(self, question: str, figures: Sequence[float], unit: str) -> None:
        shown = ", ".join(f"{figure:g}" for figure in figures)
        super().__init__(f"{question}: nothing was measured: figures {shown} {unit}; expected all above 0")


@dataclass(frozen=True, slots=True)
class Row:
    """One question and its answer. `spread` is how far our p99 is above our median, in per cent.

    NothingMeasured if a figure is not above 0. Only counts, such as calls, `may_be_zero`.
    """

    question: str
    ours: float
    theirs: float
    peer: str
    unit: str
    ratio: float
    spread: float = 0.0
    may_be_zero: bool = False

    def __post_init__(self) -> None:
        refuse_unmeasured(self.question, (self.ours, self.theirs), self.unit, may_be_zero=self.may_be_zero)

    @classmethod
    def of_times(
        cls, question: str, ours: str, peer: str, timings: Mapping[str, Timing], *, work: float, unit: str
    ) -> "Row":
        """A row of work done per second: `work` units in each round, by the runs named `ours` and `peer`."""
        mine, theirs = timings[ours], timings[peer]
        spread = 100 * (mine.p99 / mine.median - 1)
        ratio = theirs.median / mine.median
        return cls(question, work / mine.median, work / theirs.median, peer, unit, ratio, spread)

    def for_json(self) -> dict[str, object]:
        names = ("question", "ours", "theirs", "peer", "unit", "ratio")
        return {name: getattr(self, name) for name in names}


def refuse_unmeasured(
    question: str, figures: Sequence[float], unit: str, *, may_be_zero: bool = False
) -> None:
    """Raise NothingMeasured unless each figure is finite and above 0, or 0 where that is allowed."""
    if not all(math.isfinite(one) and (one > 0 or (may_be_zero and one == 0)) for one in figures):
        raise NothingMeasured(question, figures, unit)


def machine(options: Options) -> None:
    """Print what this ran on: processor, kernel, Python, commit, and how memory was treated."""
    print(f"machine: {_processor()}, {platform.system()} {platform.release()}")
    # How an interpreter was built makes a difference of a quarter, and its path tells where it is from.
    print(f"python:  {platform.python_version()}, {Path(sys.executable).resolve()}")
    print(f"commit:  {_commit()}")
    print(f"memory:  {'given back' if options.fresh else 'kept'} when freed, for all runs alike")


def _processor() -> str:
    names = set()
    cores = 0
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.startswith("model name"):
            names.add(line.partition(":")[2].strip())
            cores += 1
    return f"{cores} x {', '.join(sorted(names))}" if names else platform.processor()


def _commit() -> str:
    here = Path(__file__).parent
    asked = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "not a git checkout, or one without commits"


def report(rows: Sequence[Row], options: Options) -> None:
    """Print the table, and write the JSON file if there is to be one."""
    width = max((len(row.question) for row in rows), default=0)
    peers = max((len(row.peer) for row in rows), default=0)
    print(f"{'question':{width}}  {'ours':>10}  {'theirs':>10}  {'unit':13}  {'ratio':>6}  {'p99':>6}  peer")
    for row in rows:
        print(
            f"{row.question:{width}}  {row.ours:>10.3f}  {row.theirs:>10.3f}  {row.unit:13}  "
            f"{row.ratio:>6.2f}  {f'+{row.spread:.0f}%':>6}  {row.peer:{peers}}".rstrip()
        )
    if options.json is not None:
        options.json.write_text(json.dumps([row.for_json() for row in rows], indent=1) + "\n")
