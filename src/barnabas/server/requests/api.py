"""The row of a handler in the table of APIs, and the context that handlers get (compiled)."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias, final

from mypy_extensions import i64

from barnabas.base.errors import Malformed
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.server.requests.later import Later
from barnabas.server.requests.slices import Slices, weight
from barnabas.server.services import Services

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
        self._first: i64 = versions.start
        self._last: i64 = versions.stop - 1

    def speaks(self, version: i64) -> bool:
        """`version in versions`, but faster: called for every request."""
        return self._first <= version <= self._last

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
                if weight(getattr(answer, path[0]) or (), path[1:]) > ENCODED_AT_ONCE_MAX:
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
