"""The metrics, health and readiness pages of a broker, and the HTTP server for them.

The server starts before the broker and closes after it, so that it also reports a long start: meanwhile the
broker is healthy, but not ready. base/metrics_server.py speaks HTTP.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TypeAlias

from barnabas import __version__
from barnabas.base.http_request import HttpRequest
from barnabas.base.metrics_server import MetricsServer, Page, Response, dialect_of, plain_text
from barnabas.server.broker import Broker
from barnabas.server.disk_space import DiskSpace
from barnabas.server.metrics.catalog import exposition
from barnabas.server.metrics.sources import ProcessFigures, Scrape, Sources
from barnabas.server.network.pool import ConnectionPool

# Returns a description of a problem, or None.
Complaint: TypeAlias = Callable[[], str | None]


def pages(sources: Sources, space: DiskSpace, *, unhealthy: Complaint, unready: Complaint) -> dict[str, Page]:
    """The pages of a broker. Unhealthy: it must be restarted. Ready: clients may connect."""

    async def metrics(request: HttpRequest) -> Response:
        dialect = dialect_of(request)
        scrape = Scrape(sources, await space.measure())
        return Response(HTTPStatus.OK, dialect.value, exposition(scrape, dialect))

    async def health(_: HttpRequest) -> Response:
        return _verdict(unhealthy())

    async def ready(_: HttpRequest) -> Response:
        return _verdict(unready())

    return {"/metrics": metrics, "/health": health, "/ready": ready}


def _verdict(complaint: str | None) -> Response:
    if complaint is None:
        return plain_text(HTTPStatus.OK, "ok")
    return plain_text(HTTPStatus.SERVICE_UNAVAILABLE, complaint)


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
            unhealthy=lambda: topic_name_error(broker),
            unready=lambda: topic_name_error(broker) or what_is_missing(broker),
        )
    )


def topic_name_error(broker: Broker) -> str | None:
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
