"""Bytes objects that are filled once, and the bytes object of a view."""

import tracemalloc
from array import array

import pytest

from barnabas.records.buffers import FRESH_BYTES_MIN, bytes_of_view, fresh_bytes


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


# The bytes object of a view

DATA = bytes(range(200))


@pytest.mark.parametrize(("start", "end"), [(0, 200), (3, 150), (199, 200), (200, 200), (7, 7)])
def test_a_view_of_bytes_is_found(start: int, end: int) -> None:
    found = bytes_of_view(memoryview(DATA)[start:end])

    assert found is not None
    assert found[0] is DATA
    assert found[1] == start or start == end


def test_a_view_of_a_view_is_found() -> None:
    assert bytes_of_view(memoryview(DATA)[10:100][20:30]) == (DATA, 30)


def test_other_objects_and_views_with_gaps_are_not_found() -> None:
    assert bytes_of_view(memoryview(bytearray(DATA))) is None
    assert bytes_of_view(memoryview(array("i", [1]))) is None
    assert bytes_of_view(memoryview(DATA)[::2]) is None


def test_nothing_is_kept() -> None:
    view = memoryview(bytes(1000))

    bytes_of_view(view)

    # release() would fail if a buffer of the view were still exported.
    view.release()
