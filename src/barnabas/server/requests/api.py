"""What a handler is: its row in the table of APIs, and what it is given (compiled)."""

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

# Items of a response that are encoded at once, which takes two or three milliseconds.
ENCODED_AT_ONCE_MAX: Final = 1_000
# Items of a request that belong together, such as the settings of one resource or the partitions that one
# request adds to a transaction. To handle them takes tens of milliseconds.
WHOLE_ITEMS_MAX: Final = 10_000


class NoAnswer:
    """What a handler returns instead of a response. CLOSE also ends the connection."""

    def __init__(self, *, closes: bool) -> None:
        self.closes: Final = closes


# A produce with acks=0 has no answer; one that failed is told by a closed connection.
NO_ANSWER: Final = NoAnswer(closes=False)
CLOSE: Final = NoAnswer(closes=True)


class EncodedBody:
    """A response that is encoded already, but for its header."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts: Final = parts


@final
class Context:
    """One connection as its handlers see it: who is there, and through which door they came."""

    __slots__ = ("broker", "client_address", "client_host", "listener")

    def __init__(self, broker: Services, *, listener: str, client_address: str) -> None:
        self.broker: Final = broker
        self.listener: Final = listener
        self.client_address: Final = client_address
        # The same as groups write it down: Java writes addresses with a slash in front.
        self.client_host: Final = f"/{client_address}"


# A response message; or one that comes later; or the work that makes it.
Answer: TypeAlias = object | Later | Awaitable[object]
Handle: TypeAlias = Callable[[Context, Request], Answer]
# The response that says of everything in a request that it failed.
Refuse: TypeAlias = Callable[[Any, int, ErrorCode], object]


@final
class Api:
    """One row: which versions of a key are spoken, who answers, and how to say that nothing worked."""

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
        # What ApiVersions says, where it says something else.
        self.advertised: Final = advertised
        # With those that Kafka calls unstable: spoken if unstable.api.versions.enable says so.
        self.with_unstable: Final = with_unstable
        # How a request with many items is split (slicing.py): a row for each list that may be long.
        self.slices: Final = slices
        # The paths to lists of the response that may be long although the request is short.
        self.long_lists: Final = long_lists
        # The handler itself pauses where a request has many items.
        self.pauses: Final = pauses
        # Whether a request with many items is no trouble once it is decoded.
        self.takes_many: Final = pauses or bool(slices)
        self._first: i64 = versions.start
        self._last: i64 = versions.stop - 1

    def speaks(self, version: i64) -> bool:
        """The same as asking `versions`; every request does."""
        return self._first <= version <= self._last

    def slices_of(self, body: object, *, is_large: bool) -> Slices | None:
        """Return how to split a request, if it has so many items that it takes long."""
        for slices in self.slices:
            if (is_large or not slices.is_hot) and slices.is_long(body):
                return slices
        return None

    def check_whole(self, body: object, slices: Slices | None, items: int) -> None:
        """Refuse a request of so many items if more of them than the limit are handled at once."""
        at_once = items - (0 if slices is None else slices.weight(body))
        if at_once > WHOLE_ITEMS_MAX and not self.pauses:
            raise Malformed(
                f"{at_once} items must be handled together, the limit is {WHOLE_ITEMS_MAX}",
                where=type(body).__name__,
            )

    def long_list(self, answer: object) -> str | None:
        """Return the list of a response that is so long that it is encoded in steps."""
        if not isinstance(answer, EncodedBody):
            for path in self.long_lists:
                if weight(getattr(answer, path[0]) or (), path[1:]) > ENCODED_AT_ONCE_MAX:
                    return path[0]
        return None

    def unstable(self) -> "Api":
        """The row of a broker that speaks unstable versions."""
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
