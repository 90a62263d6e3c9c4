"""One partition of a Produce request: find the partition and the one batch for it (compiled).

The batch itself is checked when the log admits it (storage/intake.py).
"""

from typing import Final

from barnabas.base.errors import BarnabasError, kept
from barnabas.base.ids import TopicPartition
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.records.errors import CorruptBatch, InvalidBatch, UnknownCodec
from barnabas.records.header import (
    ATTRIBUTES_AT,
    BASE_SEQUENCE_AT,
    BATCH_LENGTH_AT,
    CODEC_BITS,
    HEADER_SIZE,
    INT32,
    LENGTH_EXCLUDES,
    MAGIC,
    MAGIC_AT,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    PRODUCER,
    PRODUCER_ID_AT,
    TRANSACTIONAL_BIT,
    Codec,
)
from barnabas.replication.errors import NoTransactionalId, UnknownTopicId
from barnabas.replication.partition import Partition, find_partition
from barnabas.server.coordination.verification import Speech
from barnabas.server.errors import code_of
from barnabas.server.produce.recompress import AS_PRODUCED, needs_recompression, recompressed
from barnabas.server.services import Services
from barnabas.storage.files import Buffer
from barnabas.storage.producers.table import Verification

ALL_IN_SYNC: Final = -1
_TOPIC_IDS_FROM: Final = 13
# The minimum batch length in any version of the record format.
_LENGTH_MIN: Final = 14
_ZSTD_FROM: Final = 7
_ZSTD: Final = int(Codec.ZSTD)


class NotVerified(BarnabasError):
    """The batch could not be verified as part of its transaction, so it was not appended."""

    def __init__(self, code: ErrorCode, why: str) -> None:
        super().__init__(f"the transaction could not be verified: {why}")
        self.code = code


class PartitionBatch:
    """The constructor finds the partition and the batch; `wrong` is the error that was found."""

    __slots__ = (
        "batch",
        "index",
        "is_batch",
        "is_transactional",
        "partition",
        "producer_epoch",
        "producer_id",
        "start",
        "verification",
        "wrong",
    )

    def __init__(
        self,
        broker: Services,
        topic: TopicProduceData,
        data: PartitionProduceData,
        version: int,
        body: ProduceRequest,
    ) -> None:
        self.index = data.index
        self.batch: Buffer = b""
        # The position of the batch in the request.
        self.start: int = data.start
        # Whether there is exactly one batch, valid or not.
        self.is_batch = False
        self.partition: Partition | None = None
        self.wrong: BarnabasError | None = None
        self.is_transactional = False
        # Set for a transactional batch.
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.verification: Verification | None = None
        try:
            self.partition = _find(broker, topic, data.index, version)
            self.batch = only_batch(data.records, version)
            self.is_batch = True
            is_transactional = _is_transactional(self.batch, body.transactional_id)
            self.partition.need_leader()
            if body.acks == ALL_IN_SYNC:
                self.partition.need_in_sync()
            if is_transactional:
                self.producer_id, self.producer_epoch, _ = PRODUCER.unpack_from(self.batch, PRODUCER_ID_AT)
                self.is_transactional = True
        except BarnabasError as error:
            self.wrong = kept(error)

    @property
    def tp(self) -> TopicPartition:
        assert self.partition is not None
        return self.partition.tp

    def start_verification(self, now_ms: int, speech: Speech) -> bool:
        """Return whether the coordinator must be asked: the log has no open transaction of this producer."""
        assert self.is_transactional
        assert self.partition is not None
        try:
            self.verification = self.partition.log.producers.start_verification(
                self.producer_id,
                sequence=INT32.unpack_from(self.batch, BASE_SEQUENCE_AT)[0],
                epoch=self.producer_epoch,
                now_ms=now_ms,
                epoch_bump=speech.adds,
            )
        except BarnabasError as error:
            code = code_of(error)
            self.wrong = kept(error) if code is None else NotVerified(code, str(error))
        return self.verification is not None

    def check_leader(self) -> None:
        """Check again: the partition may have moved or been deleted while the coordinator was asked."""
        try:
            if self.wrong is None and self.partition is not None:
                self.partition.need_leader()
        except BarnabasError as error:
            self.wrong = kept(error)

    def must_wait(self) -> bool:
        return (
            self.wrong is None
            and self.partition is not None
            and self.partition.log.config.compression_type != AS_PRODUCED
            and needs_recompression(self.partition.log.config, self.batch)
        )

    async def recompress(self, broker: Services) -> None:
        if not self.must_wait() or self.partition is None:
            return
        try:
            self.batch = await recompressed(broker.executor, self.partition.log.config, self.batch)
            self.start = -1
            # The partition may have moved or been deleted meanwhile.
            self.partition.need_leader()
        except BarnabasError as error:
            self.wrong = kept(error)


def _find(broker: Services, topic: TopicProduceData, index: int, version: int) -> Partition:
    name = topic.name
    if version >= _TOPIC_IDS_FROM:
        known = broker.image.topics_by_id.get(topic.topic_id)
        if known is None:
            raise UnknownTopicId("unknown topic id")
        name = known.name
    return find_partition(broker.replicas, name, index)


def only_batch(records: Buffer | None, version: int) -> Buffer:
    """Return the one batch in the partition data. An incomplete batch after it is dropped, as in Kafka.

    InvalidBatch if there is none, or more than one; CorruptBatch if its length or magic is invalid.
    """
    size = _batch_size(records, 0)
    if size is None or records is None:
        raise InvalidBatch("partition data holds no complete batch", where="records")
    if size != len(records):
        if _batch_size(records, size) is not None:
            raise InvalidBatch(
                "partition data holds more than one batch; send one batch per partition", where="records"
            )
        records = records[:size]
    if records[MAGIC_AT] != MAGIC:
        raise InvalidBatch(f"magic is {records[MAGIC_AT]}, expected {MAGIC}", where="records")
    if version < _ZSTD_FROM and size >= HEADER_SIZE and records[ATTRIBUTES_AT + 1] & CODEC_BITS == _ZSTD:
        raise UnknownCodec(
            f"zstd needs Produce version {_ZSTD_FROM} or later, the request has version {version}",
            where="records",
        )
    return records


def _batch_size(records: Buffer | None, at: int) -> int | None:
    """The size of the batch at `at`; None if there is no complete one."""
    left = 0 if records is None else len(records) - at
    if records is None or left < LENGTH_EXCLUDES:
        return None
    (length,) = INT32.unpack_from(records, at + BATCH_LENGTH_AT)
    if length < _LENGTH_MIN:
        raise CorruptBatch(f"length is {length}, the minimum is {_LENGTH_MIN}", where=f"batch at byte {at}")
    if left <= MAGIC_AT:
        return None
    if records[at + MAGIC_AT] > MAGIC:
        raise CorruptBatch(
            f"magic is {records[at + MAGIC_AT]}, expected {MAGIC}", where=f"batch at byte {at}"
        )
    size = int(length) + LENGTH_EXCLUDES
    return size if size <= left else None


def _is_transactional(batch: Buffer, transactional_id: str | None) -> bool:
    if len(batch) < HEADER_SIZE or not batch[ATTRIBUTES_AT + 1] & TRANSACTIONAL_BIT:
        return False
    if transactional_id is None:
        raise NoTransactionalId("the batch is transactional, but the request has no transactional id")
    return True
