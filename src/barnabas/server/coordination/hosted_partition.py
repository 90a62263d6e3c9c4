"""A partition of an internal topic that a coordinator leads: implements coordinators/runtime/ports.py."""

from functools import partial
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.base.executor import Executor
from barnabas.coordinators.decision.outcome import EndMarker, InTransaction
from barnabas.coordinators.runtime.place import Place
from barnabas.coordinators.runtime.ports import CannotWrite, RefusedByLog
from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.header import (
    BASE_OFFSET_AT,
    BATCH_LENGTH_AT,
    LAST_OFFSET_DELTA_AT,
    LENGTH_EXCLUDES,
    Codec,
)
from barnabas.replication.errors import NotEnoughReplicas
from barnabas.replication.partition import Partition
from barnabas.server.errors import code_of
from barnabas.storage.errors import CorruptLog
from barnabas.storage.manager import LogManager
from barnabas.storage.producers.errors import ProducerRefused
from barnabas.storage.producers.state import Verification
from barnabas.storage.warming import warmed


class HostedPartition:
    """One partition that this broker leads, in one epoch of its leadership."""

    def __init__(
        self,
        partition: Partition,
        *,
        logs: LogManager,
        executor: Executor,
        codec: Codec,
    ) -> None:
        self.partition: Final = partition
        self.leader_epoch: Final = partition.leader_epoch
        self._logs = logs
        self._executor = executor
        self._codec = codec

    @property
    def name(self) -> str:
        return self.partition.name

    @property
    def start_offset(self) -> int:
        return self.partition.log.start_offset

    @property
    def end_offset(self) -> int:
        return self.partition.log.end_offset

    @property
    def committed_offset(self) -> int:
        return self.partition.log.high_watermark

    @property
    def batch_bytes_max(self) -> int:
        return self.partition.log.config.max_message_bytes

    def place(self) -> Place:
        log = self.partition.log
        return Place(log.end_offset, self.leader_epoch, log.rules.max_bytes, self._codec)

    def append(self, batch: bytes, now_ms: int) -> int:
        return self._write(batch, now_ms, None, False, 0)

    def append_stamped(self, batch: bytes, now_ms: int, stamp: InTransaction | EndMarker) -> int:
        if isinstance(stamp, EndMarker):
            return self._write(batch, now_ms, None, False, stamp.transaction_version)
        proof = stamp.proof
        assert proof is None or isinstance(proof, Verification), f"not a verification of a log: {proof!r}"
        return self._write(batch, now_ms, proof, stamp.must_verify, 0)

    def _write(
        self,
        batch: bytes,
        now_ms: int,
        verification: Verification | None,
        must_verify: bool,
        transaction_version: int,
    ) -> int:
        """Append and return the offset after the batch; CannotWrite or RefusedByLog if that fails."""
        partition = self.partition
        try:
            partition.need_leader(self.leader_epoch)
            partition.need_in_sync()
            partition.append_of_coordinator(
                batch,
                now_ms,
                verification=verification,
                must_verify=must_verify,
                transaction_version=transaction_version,
            )
        except NotEnoughReplicas as error:
            raise CannotWrite(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from None
        except ProducerRefused as error:
            raise RefusedByLog(code_of(error) or ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None
        except BarnabasError as error:
            raise CannotWrite(ErrorCode.NOT_COORDINATOR, str(error)) from error
        except OSError as error:
            failed = self._logs.failed(partition.log, error)
            raise CannotWrite(ErrorCode.NOT_COORDINATOR, str(failed), is_logged=True) from error
        return partition.log.end_offset

    async def read(self, offset: int, bytes_max: int) -> tuple[bytes, int]:
        log = self.partition.log
        read = partial(log.read, offset, upto=log.end_offset, bytes_max=bytes_max)
        try:
            data = (await warmed(log, self._executor, read)).read()
        except OSError as error:
            raise self._logs.failed(log, error, reading=True) from error
        return whole_batches(data, log.tp.topic)


def whole_batches(data: bytes, what: str) -> tuple[bytes, int]:
    """Return the complete batches at the start of `data`, and the offset after the last."""
    at = after = 0
    while at + LENGTH_EXCLUDES <= len(data):
        length_at = at + BATCH_LENGTH_AT
        size = LENGTH_EXCLUDES + int.from_bytes(data[length_at : length_at + 4], "big")
        if at + size > len(data):
            break
        base = int.from_bytes(data[at + BASE_OFFSET_AT : at + BASE_OFFSET_AT + 8], "big")
        delta_at = at + LAST_OFFSET_DELTA_AT
        after = base + int.from_bytes(data[delta_at : delta_at + 4], "big") + 1
        at += size
    if data and at == 0:
        raise CorruptLog(what, position=0, what="no complete batch")
    return data[:at], after
