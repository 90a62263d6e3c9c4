"""Values are printed as Java's toString() prints them; the texts here were printed by Java."""

from struct import pack

import pytest

from barnabas.cli.console.deserializers import CannotDeserialize, UnknownDeserializer, deserializer

DOUBLES = {
    +0.0: "0.0",
    0.1: "0.1",
    0.001: "0.001",
    0.0009999: "9.999E-4",
    9999999.0: "9999999.0",
    1.0e7: "1.0E7",
    123456.789: "123456.789",
    1.5e-10: "1.5E-10",
    1.7976931348623157e308: "1.7976931348623157E308",
    5e-324: "4.9E-324",
    100.0: "100.0",
    0.002: "0.002",
    -1234.5: "-1234.5",
    1e21: "1.0E21",
    float("-inf"): "-Infinity",
    float("nan"): "NaN",
}
FLOATS = {
    0x00000000: "0.0",
    0x80000000: "-0.0",
    0x3F800000: "1.0",
    0x3DCCCCCD: "0.1",
    0x7F7FFFFF: "3.4028235E38",
    0x00000001: "1.4E-45",
    0x4B800000: "1.6777216E7",
    0x4B189680: "1.0E7",
    0x4B18967F: "9999999.0",
    0x3A83126F: "0.001",
    0x501502F9: "1.0E10",
}


@pytest.mark.parametrize(("value", "text"), DOUBLES.items())
def test_a_double_is_printed_as_java_prints_it(value: float, text: str) -> None:
    assert deserializer("DoubleDeserializer")(pack(">d", value)) == text.encode()


@pytest.mark.parametrize(("bits", "text"), FLOATS.items())
def test_a_float_is_printed_with_as_few_digits_as_32_bits_need(bits: int, text: str) -> None:
    assert deserializer("FloatDeserializer")(pack(">I", bits)) == text.encode()


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("StringDeserializer", b"\xc3\xa4", b"\xc3\xa4"),
        ("StringDeserializer", b"\xff", b"\xef\xbf\xbd"),
        ("ByteArrayDeserializer", b"\xff\x00", b"\xff\x00"),
        ("BytesDeserializer", b"a\\\x00\xff~", b"a\\x5C\\x00\\xFF~"),
        ("ByteBufferDeserializer", b"abc", b"java.nio.HeapByteBuffer[pos=0 lim=3 cap=3]"),
        ("ShortDeserializer", b"\xff\xfe", b"-2"),
        ("IntegerDeserializer", b"\x00\x00\x01\x00", b"256"),
        ("LongDeserializer", b"\xff" * 8, b"-1"),
        ("BooleanDeserializer", b"\x01", b"true"),
        ("BooleanDeserializer", b"\x00", b"false"),
        ("UUIDDeserializer", b"1-2-3-4-5", b"00000001-0002-0003-0004-000000000005"),
        ("UUIDDeserializer", b"123456789-1-1-1-1", b"23456789-0001-0001-0001-000000000001"),
    ],
)
def test_each_kind_of_value_has_its_text(name: str, data: bytes, text: bytes) -> None:
    assert deserializer(name)(data) == text
    assert deserializer(f"org.apache.kafka.common.serialization.{name}")(data) == text


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("IntegerDeserializer", b"12345", "Size of data received by IntegerDeserializer is not 4"),
        ("DoubleDeserializer", b"1", "Size of data received by Deserializer is not 8"),
        ("BooleanDeserializer", b"\xff", "Unexpected byte received by BooleanDeserializer: -1"),
        ("BooleanDeserializer", b"", "Size of data received by BooleanDeserializer is not 1"),
        ("UUIDDeserializer", b"x", "Error parsing data into UUID"),
        ("VoidDeserializer", b"", "Data should be null for a VoidDeserializer."),
    ],
)
def test_invalid_bytes_are_rejected_with_kafkas_messages(name: str, data: bytes, why: str) -> None:
    with pytest.raises(CannotDeserialize) as wrong:
        deserializer(name)(data)
    assert str(wrong.value) == why


def test_an_unknown_class_is_named() -> None:
    with pytest.raises(
        UnknownDeserializer, match=r"unknown deserializer 'com\.example\.Mine'.*StringDeserializer"
    ):
        deserializer("com.example.Mine")
