"""A decoded record (compiled).

A class, not a named tuple: compiled, creating an instance costs a tenth, and a consumer creates one for every
record.
"""

from typing import TypeAlias

from mypy_extensions import i64, mypyc_attr

Header: TypeAlias = tuple[str, bytes | None]
Headers: TypeAlias = tuple[Header, ...]


# It cannot be part of a reference cycle, so the garbage collector need not visit millions of them.
@mypyc_attr(acyclic=True)
class Record:
    """Offset and timestamp are absolute. A null key or value is None, which is not the same as empty."""

    __slots__ = ("headers", "key", "offset", "timestamp", "value")

    def __init__(
        self, offset: i64, timestamp: i64, key: bytes | None, value: bytes | None, headers: Headers = ()
    ) -> None:
        self.offset: i64 = offset
        self.timestamp: i64 = timestamp
        self.key = key
        self.value = value
        self.headers = headers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (
            self.offset == other.offset
            and self.timestamp == other.timestamp
            and self.key == other.key
            and self.value == other.value
            and self.headers == other.headers
        )

    def __hash__(self) -> int:
        return hash((self.offset, self.timestamp, self.key, self.value, self.headers))

    def __repr__(self) -> str:
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, "
            f"value={self.value!r}, headers={self.headers!r})"
        )
