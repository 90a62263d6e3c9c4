"""Frames on a connection: cut them from a stream, and decode and encode their header and body.

A frame is a four-byte length, then that many bytes. FrameDecoder is sans-IO: bytes in, frames out. A server
calls decode_request() and response_parts(), a client encode_request() and decode_response(): they handle
header and body in matching versions. Bytes after a body are ignored, as in Kafka.
"""

from collections.abc import Sequence
from struct import Struct
from types import FunctionType
from typing import Any, Final, final

from librt.strings import BytesWriter, read_i16_be, read_i32_be, write_i32_be
from mypy_extensions import i32, i64, mypyc_attr

from barnabas.base.errors import BarnabasError, Malformed
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import Api, api
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.connection import RequestHeader, ResponseHeader
from barnabas.protocol.schema.codec import NotEncodable, decode, decoder, encode_parts, stepped_decoder
from barnabas.protocol.schema.decoder import Decode, Steps
from barnabas.records.buffers import fresh_bytes

# socket.request.max.bytes: Kafka's default limit for one request.
FRAME_BYTES_MAX: Final = 104_857_600

# Frames from this size on are received directly into their final buffer. It is allocated once 1/64 of the
# frame has arrived, so that a length alone does not make us allocate memory.
ROOM_FROM_BYTES: Final = 64 * 1024
ROOM_TIMES: Final = 64

# Pieces smaller than this are merged: a peer that sends a large frame byte by byte must not make us hold an
# object per byte.
SMALL_PIECE_BYTES: Final = 4096

_START_BYTES: Final = 8
_SIZE: Final = Struct(">i")
# Sizes of response headers: a correlation id, and in version 1 a zero byte for no tagged fields.
_RESPONSE_HEADER_SIZE: Final[tuple[int, int]] = (4, 5)
_FRAME_SIZE_MAX: Final[i64] = 0x7FFFFFFF
_KNOWN_KEYS: Final = frozenset(ApiKey)
# Request headers: the first versions with a client id and with tagged fields; length of a null name, and of
# the longest.
_CLIENT_ID_FROM: Final = 1
_TAGS_FROM: Final = 2
_CLIENT_ID_AT: Final = _START_BYTES + 2
_NULL_SIZE: Final = 0xFFFF
_SIZE_MAX: Final = 0x7FFF
_NOT_READ: Final = -1


class FrameDecoder:
    """Splits a stream into frames. Buffers at most one incomplete frame, never larger than `limit`.

    A frame with a negative or too large length cannot be skipped, because the start of the next one is
    unknown. The frames before it are still returned; then `broken` is set, and feed() raises it.
    """

    def __init__(self, limit: int = FRAME_BYTES_MAX) -> None:
        # Whether the stream ended with an invalid length, and that length.
        self.is_broken = False
        self._bad_length = 0
        # Whether the current frame is large enough for room().
        self.is_large = False
        self._limit = limit
        self._pieces: list[bytes | bytearray] = []
        self._held = 0
        # The size of the incomplete frame with its length field; 4 while that is unknown.
        self._needed = 4
        # The buffer of a large incomplete frame.
        self._room: bytes | None = None
        self._room_left = memoryview(b"")

    @property
    def held(self) -> int:
        """The number of buffered bytes of the incomplete frame."""
        return self._held

    @property
    def missing(self) -> int:
        """The number of bytes that complete the current frame; 0 between frames or if unknown."""
        return self._needed - self._held if self._held >= 4 else 0

    @property
    def broken(self) -> Malformed | None:
        """The error that ended the stream. A new object each time: a raised error keeps a traceback."""
        return _length_error(self._bad_length, self._limit) if self.is_broken else None

    def feed(self, data: bytes) -> list[bytes]:
        """Return every frame that `data` completes; buffer the rest."""
        if self.is_broken:
            raise _length_error(self._bad_length, self._limit)
        if self._room is not None:
            taken = min(len(data), len(self._room_left))
            self._room_left[:taken] = data[:taken]
            filled = self.filled(taken)
            return filled + self.feed(data[taken:]) if taken < len(data) else filled
        if self._held + len(data) < self._needed:
            self._keep(data)
            return []
        # A large frame comes in many pieces; join them once, with the last one.
        buf = b"".join((*self._pieces, data)) if self._held else data
        self._pieces = []
        self._held = 0
        frames: list[bytes] = []
        at: i64 = 0
        end: i64 = len(buf)
        self._needed = 4
        self.is_large = False
        while end - at >= 4:
            size = i64(read_i32_be(buf, at))
            if not 0 <= size <= self._limit:
                self.is_broken = True
                self._bad_length = size
                if not frames:
                    raise _length_error(size, self._limit)
                return frames
            if end - at < 4 + size:
                self._needed = 4 + size
                self.is_large = self._needed >= ROOM_FROM_BYTES
                break
            frames.append(buf[at + 4 : at + 4 + size])
            at += 4 + size
        if at < end:
            self._keep(buf[at:])
        return frames

    def room(self) -> memoryview | None:
        """The buffer for the rest of a large frame; call filled() after writing to it.

        None if there is no large frame; then call feed(). Saving the copy saves a third of the work.
        """
        if self._room is not None:
            return self._room_left
        if not self.is_large or self._held * ROOM_TIMES < self._needed:
            return None
        held = b"".join(self._pieces)
        self._room, self._room_left = fresh_bytes(self._needed - 4)
        self._room_left[: len(held) - 4] = held[4:]
        self._room_left = self._room_left[len(held) - 4 :]
        self._pieces = []
        return self._room_left

    def filled(self, size: int) -> list[bytes]:
        """Note that `size` bytes were written to room(); return the frame if it is complete."""
        assert self._room is not None, "filled() without room()"
        self._room_left = self._room_left[size:]
        self._held += size
        if len(self._room_left):
            return []
        room, self._room = self._room, None
        self._room_left = memoryview(b"")
        self._held = 0
        self._needed = 4
        self.is_large = False
        return [room]

    def drop(self) -> None:
        """Discard the incomplete frame. Do not feed any more, because the rest of it would follow."""
        self._pieces = []
        self._room = None
        self._room_left = memoryview(b"")
        self._held = 0
        self._needed = 4
        self.is_large = False

    def _keep(self, data: bytes) -> None:
        self._held += len(data)
        if len(data) >= SMALL_PIECE_BYTES:
            self._pieces.append(data)
        elif self._pieces and isinstance(self._pieces[-1], bytearray):
            self._pieces[-1] += data
        else:
            self._pieces.append(bytearray(data))


def _length_error(size: int, limit: int) -> Malformed:
    what = f"length {size} is negative" if size < 0 else f"length {size} exceeds the limit of {limit}"
    return Malformed(what, where="frame")


class UnsupportedRequest(BarnabasError):
    """An API key or version that is not supported.

    Like Kafka, close the connection, unless the key is ApiVersions: then a client that is newer than the
    broker gets a response that it can read (see refuse_api_versions).
    """

    def __init__(self, *, key: int, version: int, correlation_id: int) -> None:
        name = ApiKey(key).name if key in _KNOWN_KEYS else "unknown"
        super().__init__(f"api key {key} ({name}) version {version} is not supported")
        self.key = key
        self.version = version
        self.correlation_id = correlation_id


@mypyc_attr(acyclic=True)
@final
class Request:
    """One decoded request. A compiled class instead of a NamedTuple, because there is one per request."""

    __slots__ = ("api", "body", "client_id", "correlation_id", "version")

    def __init__(self, api: Api, version: int, correlation_id: int, client_id: str | None, body: Any) -> None:
        self.api: Final = api
        self.version: Final = version
        self.correlation_id: Final = correlation_id
        self.client_id: Final = client_id
        self.body: Final = body


@final
class _Route:
    """The decoders of one version of one request, and the size of its response's header."""

    __slots__ = ("answer_header_size", "api", "body", "header", "header_version", "is_compiled")

    def __init__(self, api: Api, version: int) -> None:
        self.api: Final = api
        self.header_version: Final = api.request_header_version(version)
        self.header: Final[Decode] = decoder(RequestHeader, self.header_version)
        self.body: Final[Decode] = decoder(api.request, version)
        self.is_compiled: Final = not isinstance(self.body, FunctionType)
        self.answer_header_size: Final[i64] = _RESPONSE_HEADER_SIZE[api.response_header_version(version)]


# By key << 16 | version. Filled as versions are used, so bounded by the declarations; a request
# costs one look-up, and its response another.
_routes: Final[dict[int, _Route]] = {}


def decode_request(frame: bytes) -> Request:
    """Decode one frame, without its length. Raises Malformed or UnsupportedRequest."""
    route, version, correlation_id, client_id, at = _read_header(frame)
    body, _ = route.body(frame, at)
    return Request(route.api, version, correlation_id, client_id, body)


def decode_in_steps(frame: bytes) -> "DecodeInSteps":
    """Begin to decode a large frame. The header is decoded at once, with the errors of decode_request()."""
    route, version, correlation_id, client_id, at = _read_header(frame)
    steps = stepped_decoder(route.api.request, version)(frame, at)
    return DecodeInSteps(route.api, version, correlation_id, client_id, steps, route.is_compiled)


@final
class DecodeInSteps:
    """A request whose body is being decoded: run `steps`, and pass its result to request()."""

    def __init__(
        self,
        api: Api,
        version: int,
        correlation_id: int,
        client_id: str | None,
        steps: Steps,
        is_compiled: bool,
    ) -> None:
        self.api: Final = api
        self.version: Final = version
        self.correlation_id: Final = correlation_id
        self.client_id: Final = client_id
        self.steps: Final = steps
        # Whether decode_request() would take a tenth of the time.
        self.is_compiled: Final = is_compiled

    def request(self, read: tuple[Any, int, int]) -> Request:
        return Request(self.api, self.version, self.correlation_id, self.client_id, read[0])


def _read_header(frame: bytes) -> tuple[_Route, int, int, str | None, int]:
    """Read the header; return its fields and the position of the body."""
    if len(frame) < _START_BYTES:
        raise Malformed(f"{len(frame)} bytes are too few for a request header", where="request")
    key, version = i64(read_i16_be(frame, 0)), i64(read_i16_be(frame, 2))
    correlation_id = int(read_i32_be(frame, 4))
    route = _routes.get((key << 16) | (version & 0xFFFF))
    if route is None:
        route = _find_route(key, version, correlation_id)
    client_id, at = _read_client_id(frame, route.header_version)
    if at == _NOT_READ:
        header, at = route.header(frame, 0)
        client_id = header.client_id
    return route, int(version), correlation_id, client_id, at


def _read_client_id(frame: bytes, header_version: int) -> tuple[str | None, int]:
    """Read the rest of a usual header and its end; _NOT_READ for the general decoder to handle."""
    if header_version < _CLIENT_ID_FROM or len(frame) <= _CLIENT_ID_AT:
        return None, _NOT_READ
    size = (frame[_START_BYTES] << 8) | frame[_START_BYTES + 1]
    client_id: str | None = None
    end = _CLIENT_ID_AT
    if size != _NULL_SIZE:
        end += size
        if size > _SIZE_MAX or end >= len(frame):
            return None, _NOT_READ
        name = frame[_CLIENT_ID_AT:end]
        if not name.isascii():
            return None, _NOT_READ
        client_id = name.decode("ascii")
    if header_version < _TAGS_FROM:
        return client_id, end
    # No tagged fields.
    return (client_id, end + 1) if frame[end] == 0 else (None, _NOT_READ)


def _find_route(key: int, version: int, correlation_id: int) -> _Route:
    spoken = api(ApiKey(key)) if key in _KNOWN_KEYS else None
    if spoken is None or version not in spoken.versions:
        raise UnsupportedRequest(key=key, version=version, correlation_id=correlation_id)
    route = _routes[(key << 16) | (version & 0xFFFF)] = _Route(spoken, version)
    return route


def encode_request(
    body: object, version: int, *, key: ApiKey, correlation_id: int, client_id: str | None
) -> bytes:
    """Encode one frame with its length."""
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    parts: list[bytes] = [b""]
    encode_parts(header, api(key).request_header_version(version), parts)
    encode_parts(body, version, parts)
    parts[0] = _SIZE.pack(sum(map(len, parts)))
    return b"".join(parts)


def response_parts(body: object, version: int, *, key: ApiKey, correlation_id: int) -> list[bytes]:
    """Encode one frame with its length, in parts; records are separate parts and may be file ranges."""
    route = _routes.get((i64(key) << 16) | (i64(version) & 0xFFFF))
    header_size = _answer_header_size(key, version) if route is None else route.answer_header_size
    # list[Any], because mypyc would check a list[bytes], and file ranges are not bytes.
    parts: list[Any] = [b""]
    encode_parts(body, version, parts)
    return _framed(parts, header_size, correlation_id, type(body).__name__)


def encoded_response_parts(body: list[Any], version: int, *, key: ApiKey, correlation_id: int) -> list[bytes]:
    """response_parts() for a body that is encoded already."""
    header_size = _answer_header_size(key, version)
    return _framed([b"", *body], header_size, correlation_id, key.name)


def _framed(parts: list[Any], header_size: i64, correlation_id: int, what: str) -> list[bytes]:
    """Replace the first part by length and header."""
    size = header_size
    for part in parts:
        size += len(part)
    if size > _FRAME_SIZE_MAX:
        raise NotEncodable(
            f"response size {size} exceeds the maximum frame size of {_FRAME_SIZE_MAX}", where=what
        )
    start = BytesWriter()
    write_i32_be(start, i32(size))
    write_i32_be(start, i32(correlation_id))
    if header_size == _RESPONSE_HEADER_SIZE[1]:
        start.append(0)
    parts[0] = start.getvalue()
    return parts


def _answer_header_size(key: ApiKey, version: int) -> i64:
    return _RESPONSE_HEADER_SIZE[api(key).response_header_version(version)]


def decode_response(frame: bytes, version: int, *, key: ApiKey) -> tuple[int, Any]:
    """Decode one frame, without its length, to the correlation id and the body."""
    spoken = api(key)
    header, at = decode(ResponseHeader, spoken.response_header_version(version), frame)
    body, _ = decode(spoken.response, version, frame, at)
    return header.correlation_id, body


def refuse_api_versions(correlation_id: int, spoken: Sequence[tuple[int, int, int]]) -> list[bytes]:
    """Respond to an unsupported ApiVersions version: in version 0, which every client reads (KIP-511).

    `spoken` holds (key, first, last). Kafka 4.3 returns only the row of ApiVersions itself, which the client
    needs to retry.
    """
    from barnabas.protocol.messages.cluster import ApiVersion, ApiVersionsResponse

    rows = [ApiVersion(api_key=key, min_version=first, max_version=last) for key, first, last in spoken]
    body = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=rows)
    return response_parts(body, 0, key=ApiKey.API_VERSIONS, correlation_id=correlation_id)
