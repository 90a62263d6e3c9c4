"""Append a transaction marker to a partition.

Partitions of __consumer_offsets are written through the shard of their groups, so that the offsets of the
transaction become visible together with the marker.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from barnabas.base.clock import Clock
from barnabas.base.errors import BarnabasError
from barnabas.base.ids import TopicPartition
from barnabas.coordinators.decision.outcome import EndMarker, Reply
from barnabas.coordinators.runtime.host import State
from barnabas.coordinators.runtime.writing import marker_batch
from barnabas.protocol.error_codes import ErrorCode
from barnabas.replication.replicas import Replicas
from barnabas.server.coordination.groups import OFFSETS_TOPIC, GroupCoordinator
from barnabas.server.errors import code_of
from barnabas.storage.manager import LogManager

Told: TypeAlias = Callable[[ErrorCode], None]

_NONE: Final = ErrorCode.NONE
NO_ID: Final = -1
NO_EPOCH: Final = -1
# The version of a marker whose version is unknown. Only replicas may have such markers, not leaders.
NO_VERSION: Final = -1

# Errors of a group coordinator that become NOT_LEADER_OR_FOLLOWER for the transaction coordinator.
_NOT_READY: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


class MarkerAppends:
    """Appends markers to the partitions that this broker leads."""

    def __init__(
        self, *, clock: Clock, logs: LogManager, replicas: Replicas, groups: GroupCoordinator
    ) -> None:
        self._clock = clock
        self._logs = logs
        self._replicas = replicas
        self._groups = groups
        # The batch of the last marker: usually the next call writes the same marker to another partition.
        self._marker: EndMarker | None = None
        self._marker_ms = 0
        self._batch = b""

    def append(self, tp: TopicPartition, marker: EndMarker, then: Told) -> None:
        """Append a marker and call `then` with the result: at once, or when it is committed."""
        if tp.topic != OFFSETS_TOPIC or tp not in self._replicas.partitions:
            then(self._append(tp, marker))
        elif _is_nobodys(marker):
            then(ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            self._append_to_groups(tp.partition, marker, then)

    def epoch_in(self, tp: TopicPartition, producer_id: int) -> int:
        """The newest epoch of a producer in the local log; NO_EPOCH if it has none."""
        partition = self._replicas.partitions.get(tp)
        if partition is not None:
            for entry in partition.log.producers.entries():
                if entry.producer_id == producer_id:
                    return entry.epoch
        return NO_EPOCH

    def _append(self, tp: TopicPartition, marker: EndMarker) -> ErrorCode:
        now_ms = self._clock.now_ms()
        try:
            partition = self._replicas.partitions.get(tp) or self._replicas.get(tp)
            if _is_nobodys(marker):
                return ErrorCode.UNKNOWN_SERVER_ERROR
            partition.need_leader()
            partition.need_in_sync()
            try:
                partition.append_of_coordinator(
                    self._batch_of(marker, now_ms),
                    now_ms,
                    transaction_version=marker.transaction_version,
                )
            except OSError as error:
                raise self._logs.failed(partition.log, error) from error
        except BarnabasError as error:
            code = code_of(error)
            if code is None:
                raise
            return code
        return _NONE

    def _batch_of(self, marker: EndMarker, now_ms: int) -> bytes:
        if marker is not self._marker or now_ms != self._marker_ms:
            self._batch = marker_batch(marker, now_ms)
            self._marker, self._marker_ms = marker, now_ms
        return self._batch

    def _append_to_groups(self, index: int, marker: EndMarker, then: Told) -> None:
        host = self._groups.shards.hosts.get(index)
        if host is None or host.state is not State.ACTIVE:
            then(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        reply = Reply(lambda code: code)
        host.ask(lambda shard, to, now: shard.end_transaction(marker, to, now), reply)
        if reply.is_given:
            then(_told(reply.answer))
        else:
            reply.then_call(lambda answer: then(_told(answer)))


def _is_nobodys(marker: EndMarker) -> bool:
    """Whether the producer id, epoch or version is invalid. Kafka has no better code for this."""
    return (
        marker.producer_id < 0
        or marker.producer_epoch == NO_EPOCH
        or marker.transaction_version == NO_VERSION
    )


def _told(answer: object) -> ErrorCode:
    assert isinstance(answer, ErrorCode), f"unexpected response to a marker: {answer!r}"
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if answer in _NOT_READY else answer
