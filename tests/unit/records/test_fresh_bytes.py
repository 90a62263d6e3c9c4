"""Bytes that are filled in once."""

import pytest

from barnabas.records.fresh_bytes import FRESH_BYTES_MIN, fresh_bytes


def test_what_is_written_is_in_the_bytes() -> None:
    fresh, view = fresh_bytes(FRESH_BYTES_MIN)
    assert fresh == bytes(FRESH_BYTES_MIN)

    view[1:4] = b"abc"
    view[-1:] = b"z"

    assert fresh == b"\0abc" + bytes(FRESH_BYTES_MIN - 5) + b"z"


def test_nobody_else_has_the_bytes() -> None:
    first, view = fresh_bytes(FRESH_BYTES_MIN)
    second, _ = fresh_bytes(FRESH_BYTES_MIN)

    view[:1] = b"x"

    assert second == bytes(FRESH_BYTES_MIN)
    assert bytes(FRESH_BYTES_MIN) == second
    assert first != second


def test_bytes_that_may_be_shared_are_not_given_out() -> None:
    with pytest.raises(AssertionError, match="may be shared"):
        fresh_bytes(1)
