"""Run many seeds in several processes, and keep what fails as schedules that always run.

A stored failure is a file of JSON: the run as data, and what was found. Seeds do not survive changes of the
code, schedules do.
"""

import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

from barnabas.base.values import value
from barnabas.sim.quorum.run import (
    Outcome,
    QuorumSpec,
    random_spec,
    run_quorum,
    spec_from_json,
    spec_to_json,
)
from barnabas.sim.shrink import shrink

# Seeds that a worker process takes at once.
SEEDS_AT_ONCE: Final = 5


@value(kw_only=True)
class Summary:
    """The results of a run, without its history, so that processes can exchange them."""

    seed: int
    # The first violations, as text.
    violations: tuple[str, ...]
    did_nothing: bool
    cpu_s: float
    virtual_s: float
    acknowledged: int
    faults: dict[str, int]
    marks: dict[str, int]
    digest: str


class Campaign:
    """The sums over many runs."""

    def __init__(self) -> None:
        self.runs = 0
        self.cpu_s = 0.0
        self.virtual_s = 0.0
        self.acknowledged = 0
        self.idle_runs = 0
        self.failures: list[Summary] = []
        self.faults: Counter[str] = Counter()
        self.marks: Counter[str] = Counter()

    def add(self, summary: Summary) -> None:
        self.runs += 1
        self.cpu_s += summary.cpu_s
        self.virtual_s += summary.virtual_s
        self.acknowledged += summary.acknowledged
        self.idle_runs += summary.did_nothing
        self.faults.update(summary.faults)
        self.marks.update(summary.marks)
        if summary.violations:
            self.failures.append(summary)

    def lines(self, wall_s: float) -> Iterator[str]:
        """A report of the whole campaign."""
        yield (
            f"{self.runs} runs, {len(self.failures)} failed, {self.idle_runs} without a success; "
            f"{self.acknowledged} operations succeeded"
        )
        if self.cpu_s and wall_s:
            yield (
                f"{self.runs / wall_s * 60:.0f} runs per minute, {self.runs / self.cpu_s * 3600:.0f} per "
                f"CPU-hour; {self.virtual_s / 3600:.1f} hours of simulated time"
            )
        yield f"faults: {_counts(self.faults)}"
        yield f"events: {_counts(self.marks)}"


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items())) or "none"


def run_seed(seed: int) -> Summary:
    before_s = time.process_time()
    outcome = run_quorum(random_spec(seed))
    return Summary(
        seed=seed,
        violations=tuple(str(violation) for violation in outcome.violations[:3]),
        did_nothing=outcome.did_nothing,
        cpu_s=time.process_time() - before_s,
        virtual_s=outcome.virtual_s,
        acknowledged=outcome.acknowledged,
        faults=outcome.faults,
        marks=outcome.marks,
        digest=outcome.digest,
    )


def run_seeds(seeds: Iterable[int], *, workers: int) -> Iterator[Summary]:
    """Run seeds, in this process or in several others, and yield the results as they come."""
    if workers <= 1:
        yield from map(run_seed, seeds)
        return
    # A forked worker shares the imported code. Nothing here has threads.
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=context, max_tasks_per_child=None) as pool:
        yield from pool.map(run_seed, seeds, chunksize=SEEDS_AT_ONCE)


def campaign(
    seeds: Iterable[int], *, workers: int, save: Path | None, say: Callable[[str], None]
) -> Campaign:
    """Run seeds; shrink and store what fails."""
    total, began_s = Campaign(), time.monotonic()
    for summary in run_seeds(seeds, workers=workers):
        total.add(summary)
        if summary.violations:
            say(f"seed {summary.seed}: {summary.violations[0]}")
            if save is not None:
                stored = store(shrink(run_quorum(random_spec(summary.seed))), save)
                say(f"seed {summary.seed}: stored as {stored}")
    for line in total.lines(time.monotonic() - began_s):
        say(line)
    return total


def store(outcome: Outcome, directory: Path) -> Path:
    """Write a failing run to a file named by its checker and seed."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{outcome.violations[0].checker}-{outcome.spec.seed}.json"
    content = {
        "found": str(outcome.violations[0]),
        "python": ".".join(map(str, sys.version_info[:3])),
        "digest": outcome.digest,
        "run": spec_to_json(outcome.spec),
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def load(path: Path) -> QuorumSpec:
    """The run in a stored file."""
    content: dict[str, Any] = json.loads(path.read_text())
    return spec_from_json(content["run"])


def timeline(outcome: Outcome) -> Iterator[str]:
    """A run for a human: its faults, its history, and what was found."""
    spec = outcome.spec
    yield f"seed {spec.seed}: {spec.voters} voters, {spec.observers} observers, {spec.clients} clients"
    for rule in spec.rules:
        yield f"  {rule}"
    for row in outcome.history.rows:
        yield str(row)
    for violation in outcome.violations:
        yield str(violation)
    if not outcome.violations:
        yield f"no violation; {outcome.acknowledged} appends acknowledged, digest {outcome.digest}"
