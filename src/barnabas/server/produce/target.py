"""One partition of a Produce request: the partition to append to, or the error."""

from struct import Struct
from typing import Final

from barnabas.base.errors import BarnabasError, kept
from barnabas.base.ids import TopicPartition
from barnabas.base.places import topic_partition
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.records.header import (
    ATTRIBUTES_AT,
    BASE_SEQUENCE_AT,
    HEADER_SIZE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    PRODUCER_ID_AT,
    TRANSACTIONAL_BIT,
)
from barnabas.replication.errors import NoTransactionalId, UnknownTopicId
from barnabas.replication.partition import Partition
from barnabas.server.coordination.verification import Speech
from barnabas.server.errors import code_of
from barnabas.server.produce.produced import checked, only_batch
from barnabas.server.produce.recompress import AS_PRODUCED, needs_recompression, recompressed
from barnabas.server.services import Services
from barnabas.storage.files import Buffer
from barnabas.storage.producers.table import Verification

ALL_IN_SYNC: Final = -1
_TOPIC_IDS_FROM: Final = 13
# The producer's id and epoch, and the sequence of a batch's first record.
_PRODUCER: Final = Struct(">qh")
_SEQUENCE: Final = Struct(">i")


class NotVerified(BarnabasError):
    """The batch could not be verified as part of its transaction, so it was not appended."""

    def __init__(self, code: ErrorCode, why: str) -> None:
        super().__init__(f"the transaction could not be verified: {why}")
        self.code = code


class ProduceTarget:
    """The constructor finds the partition and checks the batch; `wrong` is the error that was found."""

    __slots__ = (
        "batch",
        "index",
        "is_batch",
        "is_transactional",
        "partition",
        "producer_epoch",
        "producer_id",
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
            self.batch = checked(self.batch, data)
            if is_transactional:
                self.producer_id, self.producer_epoch = _PRODUCER.unpack_from(self.batch, PRODUCER_ID_AT)
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
                sequence=_SEQUENCE.unpack_from(self.batch, BASE_SEQUENCE_AT)[0],
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
    tp = topic_partition(name, index)
    return broker.replicas.partitions.get(tp) or broker.replicas.get(tp)


def _is_transactional(batch: Buffer, transactional_id: str | None) -> bool:
    if len(batch) < HEADER_SIZE or not batch[ATTRIBUTES_AT + 1] & TRANSACTIONAL_BIT:
        return False
    if transactional_id is None:
        raise NoTransactionalId("the batch is transactional, but the request has no transactional id")
    return True
