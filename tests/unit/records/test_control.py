import pytest

from barnabas.records.control import ControlType, build_control_batch, control_key, read_control_type
from barnabas.records.decode import decode_batch
from barnabas.records.errors import CorruptBatch, InvalidBatch
from barnabas.records.record import Record
from barnabas.records.validate import check_batch, check_produced

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("kind", [ControlType.ABORT, ControlType.COMMIT])
def test_a_transaction_marker_is_of_its_producer(kind: ControlType) -> None:
    data = build_control_batch(
        kind, b"marker", base_offset=7, timestamp=1000, leader_epoch=2, producer_id=5, producer_epoch=1
    )

    header = check_batch(data)
    assert (header.is_control, header.is_transactional) == (True, True)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, -1)
    assert (header.leader_epoch, header.count, header.max_timestamp) == (2, 1, 1000)
    (record,) = decode_batch(data)
    assert record == Record(7, 1000, bytes([0, 0, 0, kind]), b"marker")
    assert read_control_type(record.key) is kind


@pytest.mark.parametrize("kind", list(ControlType)[2:])
def test_a_record_of_the_quorum_has_no_producer_and_no_transaction(kind: ControlType) -> None:
    header = check_batch(build_control_batch(kind, b"", timestamp=1, leader_epoch=2))

    assert (header.is_control, header.is_transactional, header.producer_id) == (True, False, -1)


def test_a_client_may_not_send_one() -> None:
    with pytest.raises(InvalidBatch, match="control"):
        check_produced(build_control_batch(ControlType.LEADER_CHANGE, b"", timestamp=1, leader_epoch=2))


def test_the_numbers_are_kafkas() -> None:
    assert [kind.name for kind in sorted(ControlType)] == [
        "ABORT",
        "COMMIT",
        "LEADER_CHANGE",
        "SNAPSHOT_HEADER",
        "SNAPSHOT_FOOTER",
        "KRAFT_VERSION",
        "KRAFT_VOTERS",
    ]
    assert list(ControlType) == list(range(7))


def test_a_type_that_is_not_known_is_kept_as_its_number() -> None:
    assert read_control_type(bytes.fromhex("0000 0063")) == 99
    assert read_control_type(bytes.fromhex("0000 ffff")) == -1


def test_a_later_key_version_may_be_longer() -> None:
    assert read_control_type(bytes.fromhex("0001 0001 abcd")) is ControlType.COMMIT
    assert control_key(ControlType.COMMIT) == bytes.fromhex("0000 0001")


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", bytes.fromhex("ffff 0001")])
def test_a_key_that_is_none_is_corrupt(key: bytes | None) -> None:
    with pytest.raises(CorruptBatch, match="control record key"):
        read_control_type(key)
