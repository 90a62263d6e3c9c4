"""Writing a message field by field, for tuned encoders (compiled).

They write messages of the usual shape into one bytes object. For any other message they raise one of
ENCODE_FAILURES; the encoder on top then leaves the whole message to the generic encoder, which handles
every shape and raises the error for an invalid message.
"""

from librt.strings import BytesWriter, write_i16_be, write_i32_be
from mypy_extensions import i16, i32, i64, u8

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.encoder import Unwritable
from barnabas.protocol.wire import STRING_BYTES_MAX


def write_no_tags(w: BytesWriter, flexible: bool, unknown_tags: tuple[tuple[int, bytes], ...]) -> None:
    """The end of a struct of which no tagged field is set."""
    if unknown_tags:
        raise Unwritable
    if flexible:
        w.append(u8(0))


def write_count(w: BytesWriter, flexible: bool, count: i64) -> None:
    """The length of an array."""
    if flexible:
        write_length(w, count + 1)
    else:
        write_i32_be(w, i32(count))


def write_null_array(w: BytesWriter, flexible: bool) -> None:
    if flexible:
        w.append(u8(0))
    else:
        write_i32_be(w, -1)


def write_string(w: BytesWriter, flexible: bool, text: str) -> None:
    data = text.encode()
    size: i64 = len(data)
    if size > STRING_BYTES_MAX:
        raise Unwritable
    if flexible:
        write_length(w, size + 1)
    else:
        write_i16_be(w, i16(size))
    w.write(data)


def write_nullable_string(w: BytesWriter, flexible: bool, text: str | None) -> None:
    if text is not None:
        write_string(w, flexible, text)
    elif flexible:
        w.append(u8(0))
    else:
        write_i16_be(w, i16(-1))


def write_bytes(w: BytesWriter, flexible: bool, data: bytes) -> None:
    size: i64 = len(data)
    if flexible:
        write_length(w, size + 1)
    else:
        write_i32_be(w, i32(size))
    w.write(data)


def write_nullable_bytes(w: BytesWriter, flexible: bool, data: bytes | None) -> None:
    if data is not None:
        write_bytes(w, flexible, data)
    else:
        write_null_array(w, flexible)


def write_uuid(w: BytesWriter, value: Uuid) -> None:
    if len(value) != 16:
        raise Unwritable
    w.write(value)


def write_bool(w: BytesWriter, value: bool) -> None:
    w.append(u8(1) if value else u8(0))


def write_int8(w: BytesWriter, value: i32) -> None:
    if not -0x80 <= value <= 0x7F:
        raise Unwritable
    w.append(u8(value & 0xFF))


def write_int16(w: BytesWriter, value: i32) -> None:
    if not -0x8000 <= value <= 0x7FFF:
        raise Unwritable
    write_i16_be(w, i16(value))


def write_int32_item(w: BytesWriter, value: int) -> None:
    """Write a number from a list, whose items may be of any size."""
    if not -0x80000000 <= value <= 0x7FFFFFFF:
        raise Unwritable
    write_i32_be(w, i32(value))


def write_length(w: BytesWriter, value: i64) -> None:
    """An unsigned varint."""
    while value > 0x7F:
        w.append(u8(value & 0x7F | 0x80))
        value >>= 7
    w.append(u8(value))
