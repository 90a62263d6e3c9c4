"""Encode and decode any message: the only interface to the generated code.

The functions for a (message, version) are generated at first use and cached. The cache is bounded by the
number of declared versions.
"""

from functools import partial
from typing import Any, Final, TypeVar

from barnabas.base.errors import BarnabasError
from barnabas.protocol.schema.decoder import (
    Decode,
    SteppedDecode,
    compile_decoder,
    compile_stepped_decoder,
)
from barnabas.protocol.schema.encoder import ENCODE_FAILURES, Encode, compile_encoder
from barnabas.protocol.schema.explain import explain_message
from barnabas.protocol.schema.struct import schema_of

T = TypeVar("T")

_decoders: Final[dict[tuple[type, int], Decode]] = {}
_stepped_decoders: Final[dict[tuple[type, int], SteppedDecode]] = {}
_encoders: Final[dict[tuple[type, int], Encode]] = {}
# For messages that a tuned encoder does not write.
_generic_encoders: Final[dict[tuple[type, int], Encode]] = {}


class UnsupportedVersion(BarnabasError):
    def __init__(self, cls: type, version: int) -> None:
        super().__init__(f"{cls.__name__} has no version {version}, only {schema_of(cls).versions}")


class NotEncodable(BarnabasError):
    """Our own message cannot be written in the requested version."""

    def __init__(self, what: str, *, where: str) -> None:
        super().__init__(f"{where}: {what}")
        self.what = what
        self.where = where


def decode(cls: type[T], version: int, data: bytes | memoryview, at: int = 0) -> tuple[T, int]:
    """Return the message at `at` and the position after it; Malformed if it is invalid.

    `records` fields are views of `data`. The caller decides about bytes after the message.
    """
    try:
        function: Any = _decoders[cls, version]
    except KeyError:
        function = decoder(cls, version)
    result: tuple[T, int] = function(data if type(data) is bytes else bytes(data), at)
    return result


def decoder(cls: type, version: int) -> Decode:
    """The function behind decode(), for callers that decode many: it takes bytes and a position."""
    function = _decoders.get((cls, version))
    if function is None:
        _check(cls, version)
        tuned = schema_of(cls).tuned_decoder
        function = partial(tuned, version) if tuned else compile_decoder(cls, version)
        _decoders[cls, version] = function
    return function


def stepped_decoder(cls: type, version: int) -> SteppedDecode:
    """Return a generator-based decoder that pauses regularly, for large frames."""
    function = _stepped_decoders.get((cls, version))
    if function is None:
        _check(cls, version)
        function = _stepped_decoders[cls, version] = compile_stepped_decoder(cls, version)
    return function


def encode_parts(message: object, version: int, parts: list[bytes]) -> None:
    """Append the encoded message to `parts`; `records` objects are appended as they are."""
    try:
        function = _encoders[type(message), version]
    except KeyError:
        function = _encoder(type(message), version)
    try:
        if function(message, parts) is False:
            _generic_encoder(type(message), version)(message, parts)
    except ENCODE_FAILURES as failure:
        raise _refusal(message, version) from failure


def encode(message: object, version: int) -> bytes:
    parts: list[bytes] = []
    encode_parts(message, version, parts)
    try:
        return b"".join(parts)
    except TypeError as failure:
        raise _refusal(message, version) from failure


def _refusal(message: object, version: int) -> NotEncodable:
    what, where = explain_message(message, version)
    return NotEncodable(what, where=where)


def _encoder(cls: type, version: int) -> Encode:
    _check(cls, version)
    tuned = schema_of(cls).tuned_encoder
    function: Encode = partial(tuned, version) if tuned else compile_encoder(cls, version)
    _encoders[cls, version] = function
    return function


def _generic_encoder(cls: type, version: int) -> Encode:
    function = _generic_encoders.get((cls, version))
    if function is None:
        function = _generic_encoders[cls, version] = compile_encoder(cls, version)
    return function


def _check(cls: type, version: int) -> None:
    if version not in schema_of(cls).versions:
        raise UnsupportedVersion(cls, version)
