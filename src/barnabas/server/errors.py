"""The one table that maps errors to codes of the protocol. An error that is not in it is a bug."""

from typing import Final

from barnabas.base.errors import Malformed
from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.errors import (
    CorruptBatch,
    DecompressedTooLarge,
    DecompressionFailed,
    InvalidBatch,
    UnknownCodec,
    UnsupportedMagic,
)
from barnabas.replication.errors import (
    FencedLeaderEpoch,
    InconsistentTopicId,
    NotEnoughReplicas,
    NotForClients,
    NotLeader,
    NoTransactionalId,
    UnknownLeaderEpoch,
    UnknownPartition,
    UnknownTopicId,
)
from barnabas.storage.errors import (
    BatchTooLarge,
    CorruptFile,
    CorruptLog,
    DirectoryOffline,
    DiskFull,
    InvalidTimestamp,
    LogClosed,
    LogFailed,
    MissingKey,
    OffsetOutOfRange,
    Shortage,
)
from barnabas.storage.producers.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)

_CODES: Final[dict[type[BaseException], ErrorCode]] = {
    # Batches
    CorruptBatch: ErrorCode.CORRUPT_MESSAGE,
    DecompressionFailed: ErrorCode.CORRUPT_MESSAGE,
    DecompressedTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    InvalidBatch: ErrorCode.INVALID_RECORD,
    UnsupportedMagic: ErrorCode.INVALID_RECORD,
    UnknownCodec: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    Malformed: ErrorCode.CORRUPT_MESSAGE,
    BatchTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    InvalidTimestamp: ErrorCode.INVALID_TIMESTAMP,
    MissingKey: ErrorCode.INVALID_RECORD,
    # Producers
    OutOfOrderSequence: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    InvalidProducerEpoch: ErrorCode.INVALID_PRODUCER_EPOCH,
    InvalidTxnState: ErrorCode.INVALID_TXN_STATE,
    TransactionCoordinatorFenced: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    # Partitions
    UnknownPartition: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    UnknownTopicId: ErrorCode.UNKNOWN_TOPIC_ID,
    NotLeader: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    FencedLeaderEpoch: ErrorCode.FENCED_LEADER_EPOCH,
    UnknownLeaderEpoch: ErrorCode.UNKNOWN_LEADER_EPOCH,
    InconsistentTopicId: ErrorCode.INCONSISTENT_TOPIC_ID,
    NotForClients: ErrorCode.INVALID_TOPIC_EXCEPTION,
    NoTransactionalId: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    NotEnoughReplicas: ErrorCode.NOT_ENOUGH_REPLICAS,
    # Logs
    OffsetOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
    CorruptLog: ErrorCode.KAFKA_STORAGE_ERROR,
    CorruptFile: ErrorCode.KAFKA_STORAGE_ERROR,
    DirectoryOffline: ErrorCode.KAFKA_STORAGE_ERROR,
    DiskFull: ErrorCode.KAFKA_STORAGE_ERROR,
    LogFailed: ErrorCode.KAFKA_STORAGE_ERROR,
    Shortage: ErrorCode.KAFKA_STORAGE_ERROR,
    # Deleted or closed a moment ago: the client should look up the leader again.
    LogClosed: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}


def code_of(error: BaseException) -> ErrorCode | None:
    """The code for an error. None if it has none: then it is a bug and must be reported."""
    for kind in type(error).__mro__:
        code = _CODES.get(kind)
        if code is not None:
            return code
    return None
