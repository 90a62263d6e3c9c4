"""Prometheus' text format: from names, labels and numbers to lines (pure).

Two dialects are written, which differ in a few places: the older "0.0.4" that everything reads, and
OpenMetrics 1.0, which Prometheus asks for first. What is measured is in metrics.py.

Written by hand and not with prometheus-client, because that keeps the numbers itself: it wants to be told of
every change. Ours are kept by the rooms they belong to, and cost nothing until somebody looks. What is left
is this file, so the core install does without the dependency; its parser is the judge in tests that have it.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice
from math import isfinite
from typing import Final, NamedTuple

from barnabas.base.values import value

# So many lines are made at a time; in between others get their turn.
PIECE_LINES: Final = 1_000


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    # Facts in labels, with the value 1.
    INFO = "info"


class Dialect(StrEnum):
    """Each by its media type."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@value
class Metric:
    """One family: what it is called, what it means, and which labels its samples have.

    Counters end in _total, infos in _info. In OpenMetrics that ending is no part of the family's name.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    def family(self, dialect: Dialect) -> str:
        if dialect is Dialect.OPEN_METRICS:
            return self.name.removesuffix("_total").removesuffix("_info")
        return self.name

    def type(self, dialect: Dialect) -> str:
        if self.kind is Kind.INFO and dialect is Dialect.TEXT:
            return Kind.GAUGE
        return self.kind


class Sample(NamedTuple):
    """One line. `suffix` is what comes behind the name in a histogram."""

    labels: str
    value: int | float
    suffix: str = ""


def labelled(**values: object) -> str:
    """Labels as they stand in a line, in the order given."""
    pairs = [f'{name}="{escaped(str(value))}"' for name, value in values.items()]
    return f"{{{','.join(pairs)}}}"


def histogram(
    labels: dict[str, object], bounds: Iterable[float], counts: Iterable[int], total: float
) -> Iterator[Sample]:
    """`counts` are those within each bound and above the one before, and at the end those above all."""
    below = 0
    for bound, count in zip([*bounds, float("inf")], counts, strict=True):
        below += count
        yield Sample(labelled(**labels, le=number(float(bound))), below, "_bucket")
    yield Sample(labelled(**labels), total, "_sum")
    yield Sample(labelled(**labels), below, "_count")


def render(metric: Metric, samples: Iterable[Sample], dialect: Dialect) -> Iterator[bytes]:
    """The family as text, a piece at a time. A family without samples is left out."""
    family = metric.family(dialect)
    head = f"# HELP {family} {_help(metric.help, dialect)}\n# TYPE {family} {metric.type(dialect)}\n"
    left = iter(samples)
    while piece := list(islice(left, PIECE_LINES)):
        name = metric.name
        lines = [f"{name}{suffix}{labels} {number(value)}\n" for labels, value, suffix in piece]
        yield (head + "".join(lines)).encode()
        head = ""


def end(dialect: Dialect) -> bytes:
    """What comes after the last family."""
    return b"# EOF\n" if dialect is Dialect.OPEN_METRICS else b""


def number(value: int | float) -> str:
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    return repr(value)


def escaped(text: str) -> str:
    """The value of a label, as it stands between its quotes."""
    if "\\" in text or '"' in text or "\n" in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text


def _help(text: str, dialect: Dialect) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if dialect is Dialect.OPEN_METRICS else text
