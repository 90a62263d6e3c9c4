"""The fast path for usual marker batches and the general decoder give the same results."""

import pytest

from barnabas.base.errors import BarnabasError
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.header import COUNT_AT, HEADER_SIZE
from barnabas.storage.segment.marker import decode_marker, read_marker

pytestmark = pytest.mark.kernel

EPOCH = 7


def marker_of(kind: ControlType, value: bytes = b"\0\0\0\0\0\7") -> bytes:
    return build_control_batch(kind, value, timestamp=1, leader_epoch=0, producer_id=5, producer_epoch=1)


def said(read: object, batch: bytes) -> object:
    """The content of a marker, or the error."""
    assert callable(read)
    try:
        marker = read(batch)
    except BarnabasError as error:
        return str(error)
    return None if marker is None else (marker.aborted, marker.coordinator_epoch)


@pytest.mark.parametrize("kind", [ControlType.COMMIT, ControlType.ABORT])
def test_a_marker_has_its_outcome_and_coordinator_epoch(kind: ControlType) -> None:
    assert said(read_marker, marker_of(kind)) == (kind is ControlType.ABORT, EPOCH)


def test_a_marker_of_a_later_version_may_have_more_fields() -> None:
    longer = marker_of(ControlType.COMMIT, b"\0\1\0\0\0\7and more")
    assert said(read_marker, longer) == (False, EPOCH)


@pytest.mark.parametrize("at", [22, *range(COUNT_AT, HEADER_SIZE + 17)])
def test_a_batch_of_unusual_shape_is_decoded_by_the_slow_path(at: int) -> None:
    usual = marker_of(ControlType.COMMIT)
    assert len(usual) == HEADER_SIZE + 17
    for value in range(256):
        odd = usual[:at] + bytes([value]) + usual[at + 1 :]
        assert said(read_marker, odd) == said(decode_marker, odd)


def test_a_batch_without_its_marker_ends_nothing() -> None:
    usual = marker_of(ControlType.COMMIT)
    empty = usual[:COUNT_AT] + b"\0\0\0\0"
    empty = empty[:8] + (len(empty) - 12).to_bytes(4, "big") + empty[12:]
    assert read_marker(empty) is None
