"""Rows of bench/broker.py: what both brokers did, round by round, and whether that is what we aim at.

The ratio is the median of the rounds' ratios, because whatever else the machine did in a round, it did to
both. An aim is the smallest ratio that is enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from report import Row, refuse_unmeasured

PEER = "Kafka 4.3.0"
# A broker that needed nothing at all is better by a lot, not by infinity.
RATIO_MAX = 1000.0
TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Answer:
    """One row, and what the design asks for; None where it asks for nothing."""

    row: Row
    aim: float | None = None

    @property
    def is_missed(self) -> bool:
        return self.aim is not None and self.row.ratio < self.aim

    def shown(self) -> Row:
        """The row with its aim beside the name of the peer."""
        if self.aim is None:
            return self.row
        verdict = "missed" if self.is_missed else "met"
        return replace(self.row, peer=f"{self.row.peer}; aim {self.aim:.2f}: {verdict}")

    def line(self) -> str:
        """What is printed while the others still run."""
        row = self.shown()
        figures = f"{row.ours:.3f} and {row.theirs:.3f} {row.unit}, ratio {row.ratio:.2f}"
        return f"{row.question}: {figures} ({row.peer})"


def more_is_better(
    question: str, ours: Sequence[float], theirs: Sequence[float], unit: str, aim: float | None = None
) -> Answer:
    """A row of speeds. NothingMeasured if a round has none."""
    refuse_unmeasured(question, (*ours, *theirs), unit)
    spread = 100 * (median(ours) / min(ours) - 1)
    ratios = [_ratio(a, b) for a, b in _rounds(ours, theirs)]
    return Answer(Row(question, median(ours), median(theirs), PEER, unit, median(ratios), spread), aim)


def less_is_better(
    question: str,
    ours: Sequence[float],
    theirs: Sequence[float],
    unit: str,
    aim: float | None = None,
    *,
    may_be_zero: bool = False,
) -> Answer:
    """A row of costs: seconds, megabytes. NothingMeasured if a round has none, unless it `may_be_zero`."""
    refuse_unmeasured(question, (*ours, *theirs), unit, may_be_zero=may_be_zero)
    spread = 100 * (max(ours) / max(median(ours), TINY) - 1)
    ratios = [_ratio(b, a) for a, b in _rounds(ours, theirs)]
    row = Row(question, median(ours), median(theirs), PEER, unit, median(ratios), spread, may_be_zero)
    return Answer(row, aim)


def _rounds(ours: Sequence[float], theirs: Sequence[float]) -> list[tuple[float, float]]:
    return list(zip(ours, theirs, strict=True))


def _ratio(better: float, worse: float) -> float:
    return min(RATIO_MAX, max(better, TINY) / max(worse, TINY))
