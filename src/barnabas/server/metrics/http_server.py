"""The pages /metrics, /health and /ready of a broker, served by base/metrics_server.py."""

from collections.abc import Callable
from http import HTTPStatus
from typing import TypeAlias

from barnabas.base.http_request import HttpRequest
from barnabas.base.metrics_server import Page, Response, dialect_of, plain_text
from barnabas.server.disk_space import DiskSpace
from barnabas.server.metrics.catalog import exposition
from barnabas.server.metrics.sources import Scrape, Sources

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
