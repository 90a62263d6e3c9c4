"""Version ranges, as Kafka's definitions write them."""

import pytest

from barnabas.protocol.schema.versions import ALWAYS, NEVER, NO_LIMIT, Versions, parse_versions


@pytest.mark.parametrize("text", ["4-18", "12+", "3", "none", "0+"])
def test_a_range_prints_as_it_was_written(text: str) -> None:
    assert str(parse_versions(text)) == text


def test_both_ends_of_a_range_belong_to_it() -> None:
    versions = parse_versions("4-6")

    assert [version for version in range(10) if version in versions] == [4, 5, 6]
    assert list(versions.all()) == [4, 5, 6]


def test_a_single_version_is_a_range_of_one() -> None:
    assert parse_versions("3") == Versions(3, 3)


def test_an_open_range_ends_at_the_largest_version() -> None:
    versions = parse_versions("12+")

    assert 11 not in versions
    assert NO_LIMIT in versions


def test_none_holds_no_version() -> None:
    assert parse_versions("none") == NEVER
    assert 0 not in NEVER


def test_always_holds_every_version() -> None:
    assert 0 in ALWAYS
    assert NO_LIMIT in ALWAYS


def test_a_value_that_is_no_number_is_in_no_range() -> None:
    assert "4" not in parse_versions("4-18")  # type: ignore[comparison-overlap]


def test_an_open_range_cannot_be_listed() -> None:
    with pytest.raises(AssertionError, match=r"12\+ has no end"):
        parse_versions("12+").all()
