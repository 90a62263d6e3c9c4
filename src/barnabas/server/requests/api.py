"""The table of APIs: its rows, the dispatcher that calls their handlers, and what handlers get and return."""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final, TypeAlias, final

from mypy_extensions import i64

from barnabas.base.errors import Malformed
from barnabas.base.faults import report_fault
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request, UnsupportedRequest, refuse_api_versions, response_parts
from barnabas.protocol.schema.codec import NotEncodable
from barnabas.server.requests.error_messages import cut_messages
from barnabas.server.requests.slices import Slices, weight
from barnabas.server.services import Services

logger = logging.getLogger(__name__)

# Response items encoded in one step, which takes two or three milliseconds.
ENCODED_AT_ONCE_MAX: Final = 1_000
# Limit of request items that cannot be split, such as the settings of one resource or the partitions that one
# request adds to a transaction. Handling this many takes tens of milliseconds.
WHOLE_ITEMS_MAX: Final = 10_000


class NoAnswer:
    """Returned by a handler instead of a response. CLOSE also closes the connection."""

    def __init__(self, *, closes: bool) -> None:
        self.closes: Final = closes


# A Produce with acks=0 has no response; if it fails, the connection is closed.
NO_ANSWER: Final = NoAnswer(closes=False)
CLOSE: Final = NoAnswer(closes=True)


class EncodedBody:
    """A response that is already encoded, except for its header."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts: Final = parts


class Later:
    """A deferred response: all changes of the request have been made, and only the response must wait.

    It waits for more bytes to read or for other replicas; the requests behind it need not wait. A handler
    whose work itself takes time returns a coroutine, and the connection starts no other request until that
    is done. finish() is called once, by the producer of the answer; then_call() once, by the connection.
    """

    __slots__ = ("_answer", "_is_done", "_then", "on_cancel", "on_hurry")

    def __init__(self) -> None:
        self._answer: Any = None
        self._is_done = False
        self._then: Callable[[Any], None] | None = None
        # Called when the answer is no longer needed: the client has gone, or the broker is stopping.
        self.on_cancel: Callable[[], None] | None = None
        # Called when the broker is stopping: finish() should be called now, with what there is.
        self.on_hurry: Callable[[], None] | None = None

    def then_call(self, then: Callable[[Any], None]) -> None:
        if self._is_done:
            then(self._answer)
        else:
            self._then = then

    def finish(self, answer: object) -> None:
        assert not self._is_done, "finish() was called twice"
        self._is_done = True
        self._answer = answer
        if self._then is not None:
            then, self._then = self._then, None
            then(answer)

    def cancel(self) -> None:
        """The answer is no longer needed."""
        self._then = None
        if not self._is_done and self.on_cancel is not None:
            on_cancel, self.on_cancel = self.on_cancel, None
            on_cancel()


@final
class Context:
    """One connection as handlers see it: the client's address and the listener."""

    __slots__ = ("broker", "client_address", "client_host", "listener")

    def __init__(self, broker: Services, *, listener: str, client_address: str) -> None:
        self.broker: Final = broker
        self.listener: Final = listener
        self.client_address: Final = client_address
        # The address as group metadata has it: Java puts a slash in front of addresses.
        self.client_host: Final = f"/{client_address}"


# A response message, a deferred one, or a coroutine that returns one.
Answer: TypeAlias = object | Later | Awaitable[object]
Handle: TypeAlias = Callable[[Context, Request], Answer]
# Builds a response in which everything in the request failed with this code.
Refuse: TypeAlias = Callable[[Any, int, ErrorCode], object]


@final
class Api:
    """One row: an API key with its supported versions, handler, and error response."""

    def __init__(
        self,
        key: ApiKey,
        *,
        versions: range,
        handle: Handle,
        refuse: Refuse,
        advertised: range | None = None,
        with_unstable: range | None = None,
        slices: tuple[Slices, ...] = (),
        long_lists: tuple[tuple[str, ...], ...] = (),
        pauses: bool = False,
    ) -> None:
        self.key: Final = key
        self.versions: Final = versions
        self.handle: Final = handle
        self.refuse: Final = refuse
        # The versions in ApiVersions, if they differ.
        self.advertised: Final = advertised
        # The versions including Kafka's unstable ones: supported with unstable.api.versions.enable.
        self.with_unstable: Final = with_unstable
        # How a request with many items is split (slicing.py): one entry for each list that may be long.
        self.slices: Final = slices
        # Paths of response lists that may be long although the request is short.
        self.long_lists: Final = long_lists
        # The handler itself pauses if a request has many items.
        self.pauses: Final = pauses
        # Whether a decoded request with many items can be handled without blocking the loop.
        self.takes_many: Final = pauses or bool(slices)
        self.first: Final[i64] = versions.start
        self.last: Final[i64] = versions.stop - 1

    def slices_of(self, body: object, *, is_large: bool) -> Slices | None:
        """Return how to split a request, or None if it is short enough to handle at once."""
        for slices in self.slices:
            if (is_large or not slices.is_hot) and slices.is_long(body):
                return slices
        return None

    def check_whole(self, body: object, slices: Slices | None, items: int) -> None:
        """Refuse a request if more of its items than the limit must be handled together."""
        at_once = items - (0 if slices is None else slices.weight(body))
        if at_once > WHOLE_ITEMS_MAX and not self.pauses:
            raise Malformed(
                f"{at_once} items must be handled together, the limit is {WHOLE_ITEMS_MAX}",
                where=type(body).__name__,
            )

    def long_list(self, answer: object) -> str | None:
        """Return the name of a response list that is so long that it must be encoded in steps, or None."""
        if not isinstance(answer, EncodedBody):
            for path in self.long_lists:
                items = getattr(answer, path[0]) or ()
                count = len(items) if len(path) == 1 else weight(items, path[1:])
                if count > ENCODED_AT_ONCE_MAX:
                    return path[0]
        return None

    def unstable(self) -> "Api":
        """The row for a broker that supports unstable versions."""
        if self.with_unstable is None:
            return self
        return Api(
            self.key,
            versions=self.with_unstable,
            handle=self.handle,
            refuse=self.refuse,
            advertised=self.advertised,
            slices=self.slices,
            long_lists=self.long_lists,
            pauses=self.pauses,
        )


class Dispatcher:
    """The table of APIs of one listener."""

    def __init__(self, apis: Iterable[Api]) -> None:
        self._rows: Final = {row.key: row for row in apis}

    def find(self, key: ApiKey, version: i64, correlation_id: int) -> Api:
        """Return the row for an API key; UnsupportedRequest if the key or the version is not supported."""
        row = self._rows.get(key)
        # Faster than `version not in row.versions`: this is done for every request.
        if row is None or not row.first <= version <= row.last:
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

    def encode_shorter(
        self, api: Api, request: Request, answer: object, error: NotEncodable
    ) -> list[bytes] | None:
        """Encode a response again with its error messages cut. None if that does not help, which is a bug."""
        try:
            if not isinstance(answer, EncodedBody) and cut_messages(answer):
                return response_parts(
                    answer, request.version, key=api.key, correlation_id=request.correlation_id
                )
        except NotEncodable as still:
            error = still
        report_fault(logger, error, "response not encodable api=%s version=%d", api.key.name, request.version)
        return None

    def _failed(self, api: Api, request: Request, error: Exception) -> object:
        report_fault(logger, error, "request failed api=%s version=%d", api.key.name, request.version)
        return api.refuse(request.body, request.version, ErrorCode.UNKNOWN_SERVER_ERROR)


def is_coroutine(answer: Any) -> bool:
    """Whether a handler returned a coroutine. Cached by class: isinstance() with an ABC is slow."""
    kind = type(answer)
    known = _IS_COROUTINE.get(kind)
    if known is None:
        known = _IS_COROUTINE[kind] = isinstance(answer, Coroutine)
    return known


# Bounded by the number of response classes.
_IS_COROUTINE: Final[dict[type, bool]] = {}
