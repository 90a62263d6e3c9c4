import pytest

from barnabas.records.record import Record

pytestmark = pytest.mark.kernel

ORDER = Record(7, 1000, b"k", b"v", (("h", None),))


def test_records_are_equal_when_all_their_fields_are() -> None:
    assert Record(7, 1000, b"k", b"v", (("h", None),)) == ORDER
    assert hash(ORDER) == hash(Record(7, 1000, b"k", b"v", (("h", None),)))


@pytest.mark.parametrize(
    "other",
    [
        Record(8, 1000, b"k", b"v", (("h", None),)),
        Record(7, 1001, b"k", b"v", (("h", None),)),
        Record(7, 1000, b"", b"v", (("h", None),)),
        Record(7, 1000, b"k", None, (("h", None),)),
        Record(7, 1000, b"k", b"v", (("h", b""),)),
        Record(7, 1000, b"k", b"v"),
    ],
)
def test_records_differ_when_any_field_does(other: Record) -> None:
    assert other != ORDER


def test_a_record_is_not_equal_to_something_else() -> None:
    assert ORDER != (7, 1000, b"k", b"v", (("h", None),))


def test_a_record_shows_all_its_fields() -> None:
    assert repr(ORDER) == "Record(offset=7, timestamp=1000, key=b'k', value=b'v', headers=(('h', None),))"
