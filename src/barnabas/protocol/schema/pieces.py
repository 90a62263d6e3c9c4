"""Encode a response with a long list in steps, item by item.

The usual encoder needs the whole response as objects and blocks the event loop until it is done. Here the
caller adds items as it gets them, may pause after every step, and passes the rest of the response at the end.
"""

from collections.abc import Callable, Generator, Iterable
from functools import cache
from typing import Any, Final, NamedTuple

from barnabas.protocol.schema.codec import NotEncodable
from barnabas.protocol.schema.encoder import ENCODE_FAILURES, compile_list_encoders
from barnabas.protocol.schema.explain import explain_message
from barnabas.protocol.wire import write_uvarint

# Maximum size of a response: most clients do not read more, and it bounds our memory.
RESPONSE_BYTES_MAX: Final = 100_000_000


class ListEncoders(NamedTuple):
    """The encoders of one response at one version, around its main list."""

    # Append the fields before the list, and after it.
    before: Callable[[object, list[Any]], None]
    after: Callable[[object, list[Any]], None]
    # Appends items, and yields regularly.
    items: Callable[[Iterable[object], list[Any]], Generator[None, None, None]]
    is_compact: bool


@cache
def list_encoders(cls: type, version: int, field: str) -> ListEncoders:
    """Return the encoders, cached; their number is that of the versions of messages with long lists."""
    return ListEncoders(*compile_list_encoders(cls, version, field))


class ResponsePieces:
    """One response. Call add() any number of times, then parts() once."""

    def __init__(self, cls: type, version: int, field: str) -> None:
        self._cls: Final = cls
        self._version: Final = version
        self._field: Final = field
        self._encoders: Final = list_encoders(cls, version, field)
        self._parts: list[Any] = []
        self._count = 0
        self.size = 0

    def add(self, items: list[Any]) -> Generator[None, None, None]:
        """Encode more items of the list; every step takes about a millisecond."""
        encoded: list[Any] = []
        self._count += len(items)
        try:
            for _ in self._encoders.items(items, encoded):
                self._keep(encoded)
                encoded.clear()
                yield
        except ENCODE_FAILURES as failure:
            raise self._refusal(items) from failure
        self._keep(encoded)

    def _keep(self, encoded: list[Any]) -> None:
        # Join many small bytes objects to one. Other parts are file ranges.
        joined = all(type(part) is bytes for part in encoded)
        parts = [b"".join(encoded)] if joined else encoded[:]
        self._parts += parts
        if joined:
            self.size += len(parts[0])
        if self.size > RESPONSE_BYTES_MAX:
            raise NotEncodable(f"response exceeds {RESPONSE_BYTES_MAX} bytes", where=self._cls.__name__)

    def parts(self, shell: object) -> list[Any]:
        """Return the parts of the body; `shell` has all fields of the response except the list."""
        parts: list[Any] = []
        try:
            self._encoders.before(shell, parts)
            parts.append(self._length())
            parts += self._parts
            self._encoders.after(shell, parts)
        except ENCODE_FAILURES as failure:
            raise self._refusal([]) from failure
        return parts

    def _length(self) -> bytes:
        if self._encoders.is_compact:
            return write_uvarint(self._count + 1)
        return self._count.to_bytes(4, "big")

    def _refusal(self, items: list[Any]) -> NotEncodable:
        what, where = explain_message(self._cls(**{self._field: items}), self._version)
        return NotEncodable(what, where=where)
