"""The partitions of an internal topic that this broker leads: the logs of a coordinator's shards.

HostedPartition implements the port LedPartition of coordinators/runtime. LedPartitions follows the metadata:
it starts a shard when this broker becomes the leader of a partition, and stops it afterwards.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, Generic

from barnabas.base.errors import BarnabasError
from barnabas.base.executor import Executor
from barnabas.base.ids import TopicPartition
from barnabas.coordinators.decision.outcome import EndMarker, InTransaction
from barnabas.coordinators.runtime.ports import AnyShard, CannotWrite, RefusedByLog
from barnabas.coordinators.runtime.shards import Shards
from barnabas.coordinators.runtime.writing import NextBatch
from barnabas.metadata.image import MetadataImage
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
from barnabas.replication.replicas import Replicas
from barnabas.server.errors import code_of
from barnabas.storage.errors import CorruptLog
from barnabas.storage.manager import LogManager
from barnabas.storage.producers.errors import ProducerRefused
from barnabas.storage.producers.state import Verification
from barnabas.storage.warming import warmed


class HostedPartition:
    """One partition that this broker leads, in one epoch of its leadership. It ends with end()."""

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
        self.on_committed: Callable[[], None] | None = None
        partition.waiters[self] = None

    def is_still(self, partition: Partition | None) -> bool:
        """Whether this broker still leads it in the same epoch. `partition` is the current replica."""
        return (
            partition is self.partition
            and partition is not None
            and partition.leader_epoch == self.leader_epoch
        )

    def end(self) -> None:
        self.partition.waiters.pop(self, None)

    def poke(self, _partition: Partition) -> None:
        """The partition has changed: more of it may be committed."""
        if self.on_committed is not None:
            self.on_committed()

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

    def next_batch(self) -> NextBatch:
        log = self.partition.log
        return NextBatch(log.end_offset, self.leader_epoch, log.rules.max_bytes, self._codec)

    def append(self, batch: bytes, now_ms: int, stamp: InTransaction | EndMarker | None = None) -> int:
        verification: Verification | None = None
        must_verify = False
        transaction_version = 0
        if isinstance(stamp, EndMarker):
            transaction_version = stamp.transaction_version
        elif stamp is not None:
            proof = stamp.proof
            assert proof is None or isinstance(proof, Verification), f"not a verification of a log: {proof!r}"
            verification = proof
            must_verify = stamp.must_verify
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


class LedPartitions(Generic[AnyShard]):
    """follow() must be called with every applied image in which topics have changed."""

    def __init__(
        self,
        shards: Shards[AnyShard],
        *,
        replicas: Replicas,
        logs: LogManager,
        executor: Executor,
        codec: Codec,
    ) -> None:
        self._shards = shards
        self._replicas = replicas
        self._logs = logs
        self._executor = executor
        self._codec = codec
        self._led: dict[int, HostedPartition] = {}

    def follow(self, image: MetadataImage) -> None:
        """Start shards for partitions that this broker now leads, and stop those that it no longer leads."""
        name = self._shards.topic
        topic = image.topics.get(name)
        leads = {}
        for index in range(0 if topic is None else len(topic.partitions)):
            partition = self._replicas.partitions.get(TopicPartition(name, index))
            if partition is not None and partition.is_leader:
                leads[index] = partition
        for index, led in list(self._led.items()):
            if not led.is_still(leads.get(index)):
                self._led.pop(index).end()
                self._shards.resign(index)
        for index, partition in leads.items():
            if index not in self._led:
                hosted = HostedPartition(
                    partition, logs=self._logs, executor=self._executor, codec=self._codec
                )
                self._led[index] = hosted
                self._shards.lead(index, hosted)

    def close(self) -> None:
        """The broker is stopping: tell waiting clients to look for another coordinator."""
        for led in self._led.values():
            led.end()
        self._led.clear()
        self._shards.close()
