"""A partition behind the port of coordinators/runtime: in memory, and it can be told to fail."""

from collections.abc import Callable

from barnabas.coordinators.decision.outcome import EndMarker, InTransaction
from barnabas.coordinators.runtime.ports import CannotWrite, RefusedByLog
from barnabas.coordinators.runtime.writing import NextBatch
from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.decode import decode_batch
from barnabas.records.header import Codec


class MemoryPartition:
    name = "__consumer_offsets-0"

    def __init__(self, *, batch_bytes_max: int = 1 << 20) -> None:
        self.batches: list[bytes] = []
        self.leader_epoch = 0
        self.start_offset = 0
        self.end_offset = 0
        self.committed_offset = 0
        self.batch_bytes_max = batch_bytes_max
        self.codec = Codec.NONE
        self.on_committed: Callable[[], None] | None = None
        # Followers that do not fetch: nothing more is committed.
        self.is_stuck = False
        self.refusal: ErrorCode | None = None
        # What belongs to a producer's transaction is refused, and the log is well.
        self.refused_by_log: ErrorCode | None = None

    def next_batch(self) -> NextBatch:
        return NextBatch(self.end_offset, self.leader_epoch, self.batch_bytes_max, self.codec)

    def append(self, batch: bytes, now_ms: int, stamp: InTransaction | EndMarker | None = None) -> int:
        if stamp is not None and self.refused_by_log is not None:
            raise RefusedByLog(self.refused_by_log, "told so")
        if self.refusal is not None:
            raise CannotWrite(self.refusal, "told so")
        self.batches.append(batch)
        self.end_offset += len(decode_batch(batch))
        if not self.is_stuck:
            self.committed_offset = self.end_offset
        return self.end_offset

    async def read(self, offset: int, bytes_max: int) -> tuple[bytes, int]:
        """All of it in one go: batches are small here, and numbered from 0 by themselves."""
        return b"".join(self.batches), self.end_offset
