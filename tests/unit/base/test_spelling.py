"""The known name that a misspelled one was probably meant to be."""

import pytest

from barnabas.base.settings import nearest

KNOWN = ["startingOffsets", "startingTimestamp", "subscribe"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("startingoffset", "startingOffsets"),
        ("STARTINGTIMESTAMPS", "startingTimestamp"),
        ("subscribed", "subscribe"),
        ("topic", None),
    ],
)
def test_the_most_similar_name_is_found_in_any_case(name: str, meant: str | None) -> None:
    assert nearest(name, KNOWN) == meant
