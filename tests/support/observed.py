"""A broker's parts with their metrics: what a test fills is what it looks for in the lines."""

from collections.abc import Mapping

from barnabas.base.exposition import Dialect
from barnabas.server.metrics.catalog import exposition
from barnabas.server.metrics.request_stats import RequestStats
from barnabas.server.metrics.sources import ProcessFigures, Scrape, Sources, Space
from barnabas.server.network.admission import ConnectionLimits
from barnabas.server.network.pool import ConnectionPool
from barnabas.server.ports import divide
from support.hosted import Hosted

PROCESS = ProcessFigures(
    resident_bytes=50_000_000,
    cpu_seconds=1.5,
    started_at_seconds=1_700_000_000.25,
    open_files=20,
    open_files_max=1024,
)


def new_pool(broker: Hosted, stats: RequestStats) -> ConnectionPool:
    limits = ConnectionLimits(connections_max=10, per_host_max=10, per_host_overrides={}, idle_ms=60_000)
    return ConnectionPool(
        clock=broker.clock, limits=limits, request_bytes_max=1_000, stats=stats, context=lambda _: broker.ctx
    )


def sources_of(broker: Hosted, *listeners: str, committed_offset: int = 10) -> Sources:
    stats = RequestStats()
    pools = {name: new_pool(broker, stats) for name in listeners}
    return Sources(
        version="0.1",
        node_id=1,
        cluster_id="c",
        stats=stats,
        pools=lambda: pools,
        replicas=broker.replicas,
        logs=broker.logs,
        sessions=broker.services.sessions,
        groups=broker.services.groups,
        transactions=broker.services.transactions,
        image=lambda: broker.services.image,
        committed_offset=lambda: committed_offset,
        process=lambda: PROCESS,
        descriptors=divide(1024),
    )


def lines_of(
    sources: Sources, space: Mapping[str, Space] | None = None, dialect: Dialect = Dialect.TEXT
) -> bytes:
    return b"".join(exposition(Scrape(sources, space or {}), dialect))
