"""Find and call the handler of a request, and turn unexpected exceptions into error responses."""

import logging
from collections.abc import Iterable
from typing import Any, Final

from barnabas.base.faults import report_fault
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request, UnsupportedRequest, refuse_api_versions
from barnabas.server.requests.api import Answer, Api, Context

logger = logging.getLogger(__name__)


class Dispatcher:
    """The table of APIs of one listener."""

    def __init__(self, apis: Iterable[Api]) -> None:
        self._rows: Final = {row.key: row for row in apis}

    def find(self, key: ApiKey, version: int, correlation_id: int) -> Api:
        """Return the row for an API key; UnsupportedRequest if the key or the version is not supported."""
        row = self._rows.get(key)
        if row is None or not row.speaks(version):
            raise UnsupportedRequest(key=key, version=version, correlation_id=correlation_id)
        return row

    def refuse_unsupported(self, refused: UnsupportedRequest) -> list[bytes] | None:
        """The response to an unsupported request; None if the connection must be closed."""
        row = self._rows.get(ApiKey.API_VERSIONS)
        if refused.key != ApiKey.API_VERSIONS or row is None:
            return None
        return refuse_api_versions(
            refused.correlation_id, [(row.key, row.versions.start, row.versions.stop - 1)]
        )

    def call(self, api: Api, ctx: Context, request: Request) -> Answer:
        """Call the handler. An exception is a bug and gets an UNKNOWN_SERVER_ERROR response."""
        try:
            return api.handle(ctx, request)
        except Exception as error:
            return self._failed(api, request, error)

    async def finish(self, api: Api, request: Request, work: Any) -> Answer:
        """Await a handler's coroutine, with the same treatment of exceptions."""
        try:
            answer: Answer = await work
            return answer
        except Exception as error:
            return self._failed(api, request, error)

    def _failed(self, api: Api, request: Request, error: Exception) -> object:
        report_fault(logger, error, "request failed api=%s version=%d", api.key.name, request.version)
        return api.refuse(request.body, request.version, ErrorCode.UNKNOWN_SERVER_ERROR)
