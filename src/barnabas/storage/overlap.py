"""Write a large batch while a thread computes its CRC, and commit it only if the CRC matches (compiled).

Otherwise equal to Log.append_as_leader for one batch of a client. It raises the speed from 0.8 of a bare
write to 0.9 and more. Until it is committed, the batch is not readable and the next one overwrites it.
"""

from typing import Final

from mypy_extensions import i64

from barnabas.base.checksum import Checksums
from barnabas.storage.files import Buffer
from barnabas.storage.intake import covered, explain, take_produced
from barnabas.storage.log import PREFIX, PREFIX_SIZE, Appended, Log
from barnabas.storage.producers.table import Duplicate, Origin, Verification
from barnabas.storage.segment.batch import Batch
from barnabas.storage.segment.segment import Segment

# Below this size the overlap does not pay.
OVERLAP_BYTES: Final = 256 * 1024


def append_produced(
    log: Log,
    data: Buffer,
    checksums: Checksums,
    *,
    leader_epoch: i64,
    now_ms: i64,
    verification: Verification | None = None,
    must_verify: bool = False,
) -> Appended:
    """Append a client's batch, with the overlap if it is large enough."""
    if len(data) < OVERLAP_BYTES or log.rules.log_append_time:
        return log.append_as_leader(
            data,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            verification=verification,
            must_verify=must_verify,
        )
    log.check_open()
    attempt = _Attempt()
    checksums.begin(covered(data, len(data)))
    try:
        attempt.write(log, data, leader_epoch, now_ms, verification, must_verify)
    except BaseException:
        # Each begin() needs an end(), and a wrong CRC must be reported before errors that it may have caused.
        attempt.check(checksums.end(), data)
        raise
    attempt.check(checksums.end(), data)
    return attempt.count(log, leader_epoch, now_ms)


class _Attempt:
    """The state of an append until the CRC is known."""

    def __init__(self) -> None:
        self.batch: Batch | None = None
        self.segment: Segment | None = None
        self.duplicate: Duplicate | None = None

    def check(self, crc: int, data: Buffer) -> None:
        """Raise the error for a batch whose CRC does not match."""
        if self.batch is not None and crc != self.batch.crc:
            if self.segment is not None:
                self.segment.leave()
            explain(data)

    def write(
        self,
        log: Log,
        data: Buffer,
        leader_epoch: i64,
        now_ms: i64,
        verification: Verification | None,
        must_verify: bool,
    ) -> None:
        batch = take_produced(data, log.rules, now_ms, crc_follows=True)
        self.batch = batch
        if batch.producer_id >= 0:
            self.duplicate = log.producers.check_batch(batch, Origin.CLIENT, verification, must_verify)
            if self.duplicate is not None:
                return
        base = log.end_offset
        last = base + batch.last_delta
        segment = log.segment_for(batch.size, last, batch.max_timestamp, now_ms)
        prefix = PREFIX.pack(base, batch.size - 12, leader_epoch)
        segment.write([prefix, memoryview(data)[PREFIX_SIZE:]], batch.max_timestamp)
        self.segment = segment

    def count(self, log: Log, leader_epoch: i64, now_ms: i64) -> Appended:
        found, batch, segment = self.duplicate, self.batch, self.segment
        if found is not None:
            return Appended(found.base_offset, found.last_offset, found.timestamp, True)
        assert batch is not None
        assert segment is not None, "the batch was not written"
        base = log.end_offset
        last = base + batch.last_delta
        segment.count(batch.size, last, batch.max_timestamp, log.interval)
        if batch.max_timestamp < 0:
            segment.modified_ms = now_ms
        log.appended(batch, None, base, leader_epoch)
        return Appended(base, last)
