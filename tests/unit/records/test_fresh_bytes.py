"""Bytes objects that are filled once."""

import tracemalloc

import pytest

from barnabas.records.fresh_bytes import FRESH_BYTES_MIN, fresh_bytes


def test_header_fields_are_written_to_the_bytes() -> None:
    fresh, view = fresh_bytes(FRESH_BYTES_MIN)
    assert len(fresh) == len(view) == FRESH_BYTES_MIN

    view[:] = b"abc" + bytes(FRESH_BYTES_MIN - 4) + b"z"

    assert fresh == b"abc" + bytes(FRESH_BYTES_MIN - 4) + b"z"


def test_the_bytes_object_is_not_shared() -> None:
    first, view = fresh_bytes(FRESH_BYTES_MIN)
    second, other = fresh_bytes(FRESH_BYTES_MIN)
    other[:] = bytes(FRESH_BYTES_MIN)

    view[:] = b"x" * FRESH_BYTES_MIN

    assert second == bytes(FRESH_BYTES_MIN)
    assert first == b"x" * FRESH_BYTES_MIN


def test_the_bytes_outlive_the_view_and_are_freed_like_others() -> None:
    tracemalloc.start()
    for _ in range(100):
        fresh, view = fresh_bytes(1_000_000)
        view[:1] = b"x"
        del view
        assert fresh[:1] == b"x"
        del fresh

    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert held < 1_000_000


def test_bytes_that_may_be_shared_are_not_given_out() -> None:
    with pytest.raises(AssertionError, match="may be shared"):
        fresh_bytes(1)
