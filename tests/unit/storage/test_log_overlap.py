"""A large batch is written while its CRC is computed, and committed only if the CRC matches."""

from collections.abc import Iterator
from errno import EIO

import pytest

from barnabas.base.checksum import Checksums, InlineChecksums, ThreadChecksums
from barnabas.base.errors import Malformed
from barnabas.records.builder import build_batch
from barnabas.storage.errors import BatchTooLarge
from barnabas.storage.intake import OVERLAP_BYTES
from barnabas.storage.log import Appended, Log
from barnabas.storage.producers.errors import OutOfOrderSequence
from support.log.logs import NOW, batch, disk_of, new_log, offsets, open_again, settings, shut

pytestmark = pytest.mark.kernel

LARGE = bytes(OVERLAP_BYTES)


@pytest.fixture(params=[InlineChecksums, ThreadChecksums])
def checksums(request: pytest.FixtureRequest) -> Iterator[Checksums]:
    made = request.param()
    yield made
    if isinstance(made, ThreadChecksums):
        made.close()


def large(producer: int = -1, sequence: int = -1) -> bytes:
    epoch = 0 if producer >= 0 else -1
    return build_batch(
        [(NOW, b"k", LARGE, ())], producer_id=producer, producer_epoch=epoch, base_sequence=sequence
    )


def append(log: Log, data: bytes, checksums: Checksums) -> Appended:
    return log.append_as_leader(data, leader_epoch=3, now_ms=NOW, checksums=checksums)


def test_large_and_small_batches_follow_each_other(checksums: Checksums) -> None:
    log = new_log()

    done = [append(log, data, checksums) for data in (large(), batch(b"small"), large())]

    assert [(one.base_offset, one.last_offset, one.duplicate) for one in done] == [
        (0, 0, False),
        (1, 1, False),
        (2, 2, False),
    ]
    assert offsets(log) == [0, 1, 2]
    assert log.epochs.latest == 3
    end = shut(log)
    assert offsets(open_again(disk_of(log), clean=True, recovery_point=end).log) == [0, 1, 2]


@pytest.mark.parametrize("at", [30, 1000, OVERLAP_BYTES])
def test_a_batch_with_a_wrong_checksum_does_not_count(checksums: Checksums, at: int) -> None:
    log = new_log()
    append(log, large(), checksums)
    broken = bytearray(large())
    broken[at] ^= 1

    with pytest.raises(Malformed):
        append(log, bytes(broken), checksums)

    assert log.end_offset == 1
    append(log, batch(b"next"), checksums)
    assert offsets(log) == [0, 1]
    log.roll(NOW)
    end = shut(log)
    assert offsets(open_again(disk_of(log), recovery_point=end).log) == [0, 1]


def test_corruption_is_reported_before_errors_it_may_have_caused(checksums: Checksums) -> None:
    log = new_log()
    append(log, large(7, 0), checksums)
    broken = bytearray(large(7, 1))
    # Change the sequence, so that the batch seems to be out of order.
    broken[54] ^= 0x40

    with pytest.raises(Malformed):
        append(log, bytes(broken), checksums)


def test_duplicates_and_refusals_are_as_with_small_batches(checksums: Checksums) -> None:
    log = new_log(max_message_bytes=2 * OVERLAP_BYTES)
    append(log, large(7, 0), checksums)

    again = append(log, large(7, 0), checksums)

    assert (again.base_offset, again.duplicate) == (0, True)
    with pytest.raises(OutOfOrderSequence):
        append(log, large(7, 5), checksums)
    log.configure(settings(max_message_bytes=OVERLAP_BYTES))
    with pytest.raises(BatchTooLarge):
        append(log, large(), checksums)
    assert log.end_offset == 1


def test_a_write_that_fails_leaves_the_log_and_the_checksums_as_they_were(checksums: Checksums) -> None:
    log = new_log()
    disk_of(log).fail("/d", {"write"}, errno=EIO)

    with pytest.raises(OSError, match="Input/output"):
        append(log, large(), checksums)

    assert append(log, large(), checksums).base_offset == 0
    assert offsets(log) == [0]
