"""Find a view's position in its bytes object."""

from array import array

import pytest

from barnabas.records.beneath import bytes_beneath

DATA = bytes(range(200))


@pytest.mark.parametrize(("start", "end"), [(0, 200), (3, 150), (199, 200), (200, 200), (7, 7)])
def test_a_view_of_bytes_is_found(start: int, end: int) -> None:
    found = bytes_beneath(memoryview(DATA)[start:end])

    assert found is not None
    assert found[0] is DATA
    assert found[1] == start or start == end


def test_a_view_of_a_view_is_found() -> None:
    assert bytes_beneath(memoryview(DATA)[10:100][20:30]) == (DATA, 30)


def test_other_buffers_and_slices_have_no_bytes_object() -> None:
    assert bytes_beneath(memoryview(bytearray(DATA))) is None
    assert bytes_beneath(memoryview(array("i", [1]))) is None
    assert bytes_beneath(memoryview(DATA)[::2]) is None


def test_nothing_is_kept() -> None:
    view = memoryview(bytes(1000))

    bytes_beneath(view)

    # release() would fail if a buffer of the view were still exported.
    view.release()
