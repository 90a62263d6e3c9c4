"""Render metrics in Prometheus' text format (pure).

There are two dialects, which differ in a few places: "0.0.4", which everything reads, and OpenMetrics 1.0,
which Prometheus prefers. The metrics are declared elsewhere, those of brokers in server/metrics/catalog.py.

prometheus-client is not used, because it stores the numbers itself and must see every change. Ours are
stored by the components they belong to, and cost nothing until a scrape. The rest is this file, so the core
install needs no dependency; tests check the output with prometheus-client's parser if it is installed.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice
from math import isfinite
from typing import Final, NamedTuple

from barnabas.base.values import value

# Lines per piece; the event loop runs other work between pieces.
PIECE_LINES: Final = 1_000


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    # Constant facts as labels, with the value 1.
    INFO = "info"


class Dialect(StrEnum):
    """The dialects, by media type."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@value
class Metric:
    """One metric family: name, type, help text, and the labels of its samples.

    Counters end in _total, infos in _info. In OpenMetrics that suffix is not part of the family's name.
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
    """One line. `suffix` follows the metric's name in a histogram."""

    labels: str
    value: int | float
    suffix: str = ""


def labelled(**values: object) -> str:
    """Format labels for a line, in the given order."""
    pairs = [f'{name}="{escaped(str(value))}"' for name, value in values.items()]
    return f"{{{','.join(pairs)}}}"


def histogram(
    labels: dict[str, object], bounds: Iterable[float], counts: Iterable[int], total: float
) -> Iterator[Sample]:
    """`counts` has the number in each bucket (not cumulative), and at the end the number above all bounds."""
    below = 0
    for bound, count in zip([*bounds, float("inf")], counts, strict=True):
        below += count
        yield Sample(labelled(**labels, le=number(float(bound))), below, "_bucket")
    yield Sample(labelled(**labels), total, "_sum")
    yield Sample(labelled(**labels), below, "_count")


def render(metric: Metric, samples: Iterable[Sample], dialect: Dialect) -> Iterator[bytes]:
    """Yield the family as text, in pieces. A family without samples is omitted."""
    family = metric.family(dialect)
    head = f"# HELP {family} {_help(metric.help, dialect)}\n# TYPE {family} {metric.type(dialect)}\n"
    left = iter(samples)
    while piece := list(islice(left, PIECE_LINES)):
        name = metric.name
        lines = [f"{name}{suffix}{labels} {number(value)}\n" for labels, value, suffix in piece]
        yield (head + "".join(lines)).encode()
        head = ""


def end(dialect: Dialect) -> bytes:
    """The end of the exposition."""
    return b"# EOF\n" if dialect is Dialect.OPEN_METRICS else b""


def number(value: int | float) -> str:
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    return repr(value)


def escaped(text: str) -> str:
    """Escape a label value."""
    if "\\" in text or '"' in text or "\n" in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text


def _help(text: str, dialect: Dialect) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if dialect is Dialect.OPEN_METRICS else text
