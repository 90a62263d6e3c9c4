"""Kafka's deserializers, by the names of their Java classes. Pure.

The output equals Java's toString() of the value, except where that is a memory address
(ByteArrayDeserializer): there the bytes themselves are printed.
"""

import math
from collections.abc import Callable
from struct import Struct
from typing import Final, TypeAlias

from barnabas.base.errors import BarnabasError
from barnabas.cli.dump.java import boolean, string

Deserializer: TypeAlias = Callable[[bytes], bytes]

PACKAGE: Final = "org.apache.kafka.common.serialization."

# Java prints an exponent outside of this range.
_PLAIN_MIN: Final = 1e-3
_PLAIN_MAX: Final = 1e7
_FLOAT32: Final = Struct(">f")
# Nine digits distinguish any two 32-bit floats.
_FLOAT32_DIGITS: Final = 9


class CannotDeserialize(BarnabasError):
    """The deserializer does not accept these bytes."""


class UnknownDeserializer(BarnabasError):
    """No deserializer has this name."""

    def __init__(self, name: str) -> None:
        known = ", ".join(_BY_NAME)
        super().__init__(f"unknown deserializer {name!r}; supported: {known} (Java classes cannot be loaded)")


def deserializer(name: str) -> Deserializer:
    """Find a deserializer by the full name of Kafka's class, or the last part of it."""
    found = _BY_NAME.get(name.removeprefix(PACKAGE))
    if found is None:
        raise UnknownDeserializer(name)
    return found


def float_text(value: float, digits: str) -> str:
    """Format as Double.toString(). `digits` is the shortest text that identifies the number.

    Java prints the shortest text since version 19; older versions sometimes print one digit more.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if digits.startswith("-") else ""
    mantissa, _, exponent = digits.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    # Normalize to 0.ddd times a power of ten; both notations follow from that.
    all_digits = (whole + fraction).lstrip("0")
    if not all_digits:
        return f"{sign}0.0"
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(all_digits))
    significant = all_digits.rstrip("0")
    if len(significant) == 1:
        # Java prints at least two digits, and the second is exact: the smallest double is 4.9E-324.
        significant = f"{abs(value):.1e}".partition("e")[0].replace(".", "").rstrip("0")
    if _PLAIN_MIN <= abs(value) < _PLAIN_MAX:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{significant}"
        padded = significant.ljust(point, "0")
        return f"{sign}{padded[:point]}.{padded[point:] or '0'}"
    return f"{sign}{significant[0]}.{significant[1:] or '0'}E{point - 1}"


def _shortest_float32(value: float) -> str:
    for precision in range(1, _FLOAT32_DIGITS):
        text = f"{value:.{precision}g}"
        try:
            if _FLOAT32.unpack(_FLOAT32.pack(float(text)))[0] == value:
                return text
        except OverflowError:
            # Rounding up overflowed 32 bits.
            continue
    return f"{value:.{_FLOAT32_DIGITS}g}"


def _float(data: bytes) -> bytes:
    value = _number(_FLOAT32, "Deserializer", data)
    return float_text(value, _shortest_float32(value)).encode()


def _double(data: bytes) -> bytes:
    value = _number(Struct(">d"), "Deserializer", data)
    return float_text(value, repr(value)).encode()


def _whole_number(layout: str, name: str) -> Deserializer:
    number = Struct(layout)

    def text(data: bytes) -> bytes:
        return b"%d" % _number(number, name, data)

    return text


def _number(number: Struct, name: str, data: bytes) -> float:
    if len(data) != number.size:
        raise CannotDeserialize(f"Size of data received by {name} is not {number.size}")
    value: float = number.unpack(data)[0]
    return value


def _boolean(data: bytes) -> bytes:
    if len(data) != 1:
        raise CannotDeserialize("Size of data received by BooleanDeserializer is not 1")
    if data[0] > 1:
        shown = int.from_bytes(data, signed=True)
        raise CannotDeserialize(f"Unexpected byte received by BooleanDeserializer: {shown}")
    return boolean(data[0] == 1).encode()


def _string(data: bytes) -> bytes:
    return string(data).encode()


def _uuid(data: bytes) -> bytes:
    parts = string(data).split("-")
    try:
        numbers = [int(part, 16) for part in parts]
    except ValueError:
        numbers = []
    # Java pads parts that are too short, and cuts the start of parts that are too long.
    widths = (8, 4, 4, 4, 12)
    if len(numbers) != len(widths):
        raise CannotDeserialize("Error parsing data into UUID")
    shown = [f"{number:0{width}x}"[-width:] for number, width in zip(numbers, widths, strict=True)]
    return "-".join(shown).encode()


def _bytes(data: bytes) -> bytes:
    shown = (chr(one) if 0x20 <= one <= 0x7E and one != 0x5C else f"\\x{one:02X}" for one in data)
    return "".join(shown).encode()


def _byte_buffer(data: bytes) -> bytes:
    return b"java.nio.HeapByteBuffer[pos=0 lim=%d cap=%d]" % (len(data), len(data))


def _void(data: bytes) -> bytes:
    raise CannotDeserialize("Data should be null for a VoidDeserializer.")


def _unchanged(data: bytes) -> bytes:
    return data


_BY_NAME: Final[dict[str, Deserializer]] = {
    "StringDeserializer": _string,
    "ByteArrayDeserializer": _unchanged,
    "BytesDeserializer": _bytes,
    "ByteBufferDeserializer": _byte_buffer,
    "ShortDeserializer": _whole_number(">h", "ShortDeserializer"),
    "IntegerDeserializer": _whole_number(">i", "IntegerDeserializer"),
    "LongDeserializer": _whole_number(">q", "LongDeserializer"),
    "FloatDeserializer": _float,
    "DoubleDeserializer": _double,
    "BooleanDeserializer": _boolean,
    "UUIDDeserializer": _uuid,
    "VoidDeserializer": _void,
}
