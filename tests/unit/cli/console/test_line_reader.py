"""Keys, headers and nulls are parsed as by Kafka's LineMessageReader."""

import pytest

from barnabas.cli.console.line_reader import BadLine, LineReader, LineRecord


def reader(**properties: str) -> LineReader:
    return LineReader({name.replace("_", "."): value for name, value in properties.items()})


def test_without_properties_a_line_is_a_value() -> None:
    plain = reader()

    assert plain.record(b"a\tb") == LineRecord(b"a\tb")
    assert plain.takes_whole_lines


def test_with_a_null_marker_every_line_is_parsed() -> None:
    assert not reader(null_marker="NULL").takes_whole_lines
    assert not reader(parse_key="true").takes_whole_lines
    assert not reader(parse_headers=" TRUE ").takes_whole_lines


def test_the_key_ends_at_the_first_separator() -> None:
    assert reader(parse_key="true").record(b"k\tv\tw") == LineRecord(b"v\tw", b"k")
    assert reader(parse_key="true", key_separator="::").record(b"k::v") == LineRecord(b"v", b"k")


def test_headers_stand_before_the_key() -> None:
    both = reader(parse_key="true", parse_headers="true")

    assert both.record(b"h1:v1,h2:v2\tkey\tvalue") == LineRecord(
        b"value", b"key", (("h1", b"v1"), ("h2", b"v2"))
    )


def test_a_separator_of_headers_is_a_regular_expression() -> None:
    taken = reader(parse_headers="true", headers_separator="(;|/)").record(b"a:1;b:2/c:3\tv")

    assert taken.headers == (("a", b"1"), ("b", b"2"), ("c", b"3"))


@pytest.mark.parametrize(
    ("text", "headers"),
    [(b"a:1,", (("a", b"1"),)), (b",", ()), (b"a:", (("a", b""),)), (b"a:b:c", (("a", b"b:c"),))],
)
def test_headers_are_split_as_java_splits(text: bytes, headers: tuple[tuple[str, bytes], ...]) -> None:
    assert reader(parse_headers="true").record(text + b"\tv").headers == headers


@pytest.mark.parametrize("text", [b"", b",a:1", b"a:1,,b:2"])
def test_an_empty_header_is_an_error(text: bytes) -> None:
    with pytest.raises(BadLine, match=r"^No header key separator found in pair '' on line number 1$"):
        reader(parse_headers="true").record(text + b"\tv")


def test_fields_that_equal_the_null_marker_are_null() -> None:
    marked = reader(null_marker="NULL", parse_key="true", parse_headers="true")

    assert marked.record(b"NULL\tNULL\tNULL") == LineRecord(None, None, ())
    assert marked.record(b"h:NULL\tk\tv") == LineRecord(b"v", b"k", (("h", None),))


def test_the_key_of_a_header_cannot_be_null() -> None:
    with pytest.raises(BadLine, match=r"^Header keys should not be equal to the null marker 'NULL'"):
        reader(null_marker="NULL", parse_headers="true").record(b"NULL:a\tv")


def test_a_missing_separator_is_reported_with_its_line() -> None:
    keyed = reader(parse_key="true")
    keyed.record(b"k\tv")

    with pytest.raises(BadLine, match=r"^No key separator found on line number 2: 'novalue'$"):
        keyed.record(b"novalue")
    with pytest.raises(BadLine, match=r"^No headers delimiter found on line number 1: 'x'$"):
        reader(parse_headers="true").record(b"x")
    with pytest.raises(BadLine, match=r"^No header key separator found in pair 'x' on line number 1$"):
        reader(parse_headers="true").record(b"x\tv")


def test_with_ignore_error_a_missing_field_is_null() -> None:
    easy = reader(parse_key="true", parse_headers="true", ignore_error="true")

    assert easy.record(b"value") == LineRecord(b"value")
    assert easy.record(b"h\tvalue") == LineRecord(b"value", None, (("h", None),))


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"headers.delimiter": ","}, "headers.delimiter and headers.separator may not be equal"),
        ({"headers.key.separator": "\t"}, "headers.delimiter and headers.key.separator may not be equal"),
        ({"headers.separator": ":"}, "headers.separator and headers.key.separator may not be equal"),
        ({"null.marker": "\t"}, "null.marker and key.separator may not be equal"),
        ({"null.marker": ","}, "null.marker and headers.separator may not be equal"),
        ({"headers.separator": "["}, "headers.separator=[ is not a valid regular expression"),
        ({"key.separator": ""}, "key.separator must not be empty"),
    ],
)
def test_ambiguous_separators_are_rejected(properties: dict[str, str], why: str) -> None:
    with pytest.raises(BadLine) as wrong:
        LineReader(properties)
    assert str(wrong.value).startswith(why)


def test_bytes_that_are_not_utf_8_are_sent_unchanged() -> None:
    both = reader(parse_key="true", parse_headers="true")

    assert both.record(b"h:\xff\t\xfe\t\xfd") == LineRecord(b"\xfd", b"\xfe", (("h", b"\xff"),))
