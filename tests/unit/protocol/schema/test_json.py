"""Messages as Kafka's JSON: what is left out, what cannot be said, and how numbers and strings are printed.

tests/differential/test_json_of_kafka.py has every message of Kafka; here is one rule at a time.
"""

import pytest

from barnabas.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.schema.codec import NotEncodable, UnsupportedVersion
from barnabas.protocol.schema.fields import array, binary, int32, int64, nested, string, uuid
from barnabas.protocol.schema.json import json_text, to_json
from barnabas.protocol.schema.struct import message, struct


@struct
class Inner:
    depth_max: int = int32()


@message("data", versions="0-2", flexible="1+")
class Sample:
    first_name: str | None = string(null="1+")
    blob: bytes = binary()
    added_later: int = int64("1+", default=-1)
    does_not_matter: int = int64("2+", ignorable=True)
    tagged: int = int32("1+", tag=0, default=7)
    inner: Inner = nested(Inner, "1+", tag=1)
    numbers: list[int] = array(int32, "1+")
    id_: bytes = uuid("2+")


def test_a_version_shows_its_own_fields_in_the_order_of_the_declaration() -> None:
    shown = to_json(Sample(first_name="a", blob=b"\xfb\xff"), 2)

    assert list(shown.items()) == [
        ("firstName", "a"),
        ("blob", "+/8="),
        ("addedLater", -1),
        ("doesNotMatter", 0),
        ("numbers", []),
        ("id", "AAAAAAAAAAAAAAAAAAAAAA"),
    ]


def test_a_tagged_field_is_there_only_if_it_is_set() -> None:
    assert to_json(Sample(tagged=8, inner=Inner(depth_max=1)), 1)["tagged"] == 8
    assert to_json(Sample(inner=Inner(depth_max=1)), 1)["inner"] == {"depthMax": 1}
    assert not {"tagged", "inner"} & to_json(Sample(tagged=7, inner=Inner()), 1).keys()


def test_null_is_null() -> None:
    assert to_json(Sample(first_name=None), 1)["firstName"] is None


def test_fields_that_the_version_lacks_are_refused_unless_ignorable() -> None:
    assert "doesNotMatter" not in to_json(Sample(does_not_matter=5), 1)

    with pytest.raises(NotEncodable, match=r"Sample v0, added_later: is set, but version 0 does not have it"):
        to_json(Sample(added_later=5), 0)


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnsupportedVersion, match="has no version 3"):
        to_json(Sample(), 3)


def test_records_are_shown_as_their_size_if_so_asked() -> None:
    partition = PartitionData(partition_index=1, records=b"12345")
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])

    shown = to_json(response, 13, records_as_size=True)["responses"][0]["partitions"][0]

    assert shown["recordsSizeInBytes"] == 5
    assert "records" not in shown
    assert to_json(response, 13)["responses"][0]["partitions"][0]["records"] == "MTIzNDU="


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-1.5, "-1.5"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1.25e300, "1.25E300"),
        (-1e-300, "-1.0E-300"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
    ],
)
def test_floats_are_printed_as_java_prints_them(value: float, text: str) -> None:
    assert json_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", '"plain"'),
        ('a"b\\c/', '"a\\"b\\\\c/"'),
        ("\b\t\n\f\r", '"\\b\\t\\n\\f\\r"'),
        ("\x00\x1f", '"\\u0000\\u001F"'),
        ("\\u001f", '"\\\\u001f"'),
        ("\x7f\u2028żółw", '"\x7f\u2028żółw"'),
    ],
)
def test_strings_are_escaped_as_kafkas_library_does_it(value: str, text: str) -> None:
    assert json_text(value) == text


def test_the_text_has_no_spaces() -> None:
    assert json_text({"a": [1, None, True, {}], "b": False}) == '{"a":[1,null,true,{}],"b":false}'
