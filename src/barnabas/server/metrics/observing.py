"""Connect a broker to the HTTP server for metrics, health and readiness.

The server starts before the broker and closes after it, so that it also reports a long start: meanwhile the
broker is healthy, but not ready.
"""

from collections.abc import Callable, Mapping

from barnabas import __version__
from barnabas.base.metrics_server import MetricsServer
from barnabas.server.broker import Broker
from barnabas.server.disk_space import DiskSpace
from barnabas.server.metrics.http_server import pages
from barnabas.server.metrics.sources import ProcessFigures, Sources
from barnabas.server.network.pool import ConnectionPool


def sources_of(broker: Broker, process: Callable[[], ProcessFigures]) -> Sources:
    """The sources of a broker's metrics. `process` asks the operating system."""
    services = broker.services
    return Sources(
        version=__version__,
        node_id=services.node_id,
        cluster_id=services.cluster_id,
        stats=broker.stats,
        pools=lambda: _pools(broker),
        replicas=broker.replicas,
        logs=broker.logs,
        sessions=services.sessions,
        groups=services.groups,
        transactions=services.transactions,
        image=lambda: services.image,
        committed_offset=lambda: _committed_offset(broker),
        process=process,
        descriptors=broker.descriptors,
    )


def metrics_server(broker: Broker, process: Callable[[], ProcessFigures]) -> MetricsServer:
    """Make the server; the caller starts it with the address to listen on."""
    space = DiskSpace(broker.logs, broker.services.executor, broker.services.tasks)
    return MetricsServer(
        pages(
            sources_of(broker, process),
            space,
            unhealthy=lambda: what_is_wrong(broker),
            unready=lambda: what_is_wrong(broker) or what_is_missing(broker),
        )
    )


def what_is_wrong(broker: Broker) -> str | None:
    """Why the broker must be restarted; None if it is healthy."""
    if broker.failed.done():
        return "the broker has failed"
    directories = broker.logs.directories
    if directories and all(directory.offline is not None for directory in directories):
        return "all log directories are offline"
    return None


def what_is_missing(broker: Broker) -> str | None:
    """Why clients should not connect yet; None if they may."""
    if broker.lifecycle is None:
        return "the broker is starting"
    if broker.lifecycle.is_fenced:
        return "the broker is fenced by the controller"
    return None


def _pools(broker: Broker) -> Mapping[str, ConnectionPool]:
    return {listener.endpoint.name: listener.pool for listener in broker.listeners}


def _committed_offset(broker: Broker) -> int:
    # Without a lifecycle the quorum may not be open yet.
    return -1 if broker.lifecycle is None else broker.services.quorum.high_watermark - 1
