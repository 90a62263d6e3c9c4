"""The page of metrics is written from the table that they are served from.

python tests/unit/server/test_metrics_reference.py        # writes docs/reference/metrics.md again
"""

from collections.abc import Iterator
from pathlib import Path

from barnabas.server.metrics import TABLE
from barnabas.server.metrics_http import CONNECTIONS_MAX, REQUEST_BYTES_MAX, REQUEST_TIMEOUT_S
from barnabas.server.request_stats import BOUNDS_NS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"

OPENING = """\
What a broker tells about itself over HTTP. The addresses answer GET and HEAD:

| path | answer |
| --- | --- |
| `/metrics` | the metrics below, in Prometheus' text format 0.0.4, or in OpenMetrics 1.0 for who accepts it |
| `/health` | 200 as long as the broker need not be started again, otherwise 503 and why |
| `/ready` | 200 when clients may come, otherwise 503 and why |

Anything else is answered 404 or 405. A connection serves one request of at most {request} bytes, which has to
be there within {seconds:g} seconds; at most {connections} connections are served at once.

The number of requests of an API is `barnabas_request_duration_seconds_count`. Its buckets end at (seconds):
{bounds}.

In OpenMetrics the families of counters and of `barnabas_build_info` go without `_total` and `_info`;
their samples have the same names in both formats.
"""


def page() -> str:
    return "\n".join([*opening(), *rows(), ""])


def opening() -> Iterator[str]:
    bounds = [f"{bound / 1e9:g}" for bound in BOUNDS_NS]
    yield "# Metrics"
    yield ""
    yield from OPENING.format(
        request=REQUEST_BYTES_MAX,
        seconds=REQUEST_TIMEOUT_S,
        connections=CONNECTIONS_MAX,
        bounds=", ".join(bounds),
    ).splitlines()
    yield ""
    yield "| name | kind | labels | meaning |"
    yield "| --- | --- | --- | --- |"


def rows() -> Iterator[str]:
    for metric, _ in TABLE:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |"


def test_the_page_is_the_one_that_the_table_makes() -> None:
    assert PAGE.read_text() == page(), "write it again: see above"


if __name__ == "__main__":
    PAGE.write_text(page())
