"""docs/reference/metrics.md is made from the table that the metrics are served from.

python tests/unit/server/metrics/test_metrics_reference.py        # writes docs/reference/metrics.md again
"""

from collections.abc import Iterator
from pathlib import Path

from barnabas.base.metrics_server import CONNECTIONS_MAX, REQUEST_BYTES_MAX, REQUEST_TIMEOUT_S
from barnabas.server.metrics.catalog import TABLE
from barnabas.server.metrics.request_stats import BOUNDS_NS

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "metrics.md"

OPENING = """\
What a broker reports over HTTP, with `--metrics-port` of [`barnabas up`](../guides/running.md) and
`barnabas broker`. These paths answer GET and HEAD:

| path | response |
| --- | --- |
| `/metrics` | the metrics below: Prometheus' text format 0.0.4, or OpenMetrics 1.0 if the client accepts it |
| `/health` | 200 while the broker works, 503 with the reason if it has to be restarted |
| `/ready` | 200 while the broker accepts clients, otherwise 503 with the reason |

Everything else is 404 or 405. A connection serves one request of at most {request} bytes, which has to arrive
within {seconds:g} seconds; at most {connections} connections are served at once.

`barnabas_request_duration_seconds_count` is the number of requests of an API. The buckets of the histogram
end at (seconds): {bounds}.

In OpenMetrics the family names of counters and of `barnabas_build_info` lack `_total` and `_info`; the names
of samples are the same in both formats.
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


def test_the_page_matches_the_metrics_table() -> None:
    assert PAGE.read_text() == page(), "write it again: see above"


if __name__ == "__main__":
    PAGE.write_text(page())
