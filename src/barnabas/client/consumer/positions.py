"""The assigned partitions, their positions and buffered data, and what to look up before a fetch. Pure.

A partition is fetched while its position is known and validated, and it is not paused, stopped by an error or
in backoff. Every seek starts a new generation: data fetched for an older one is dropped.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final

from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.client.consumer.decode import BatchReader
from barnabas.client.consumer.errors import NotAssigned
from barnabas.client.consumer.message import Message
from barnabas.client.errors import ClientError


class CompletedFetch:
    """The unread data of one partition in one fetch response.

    `data[start:whole]` holds complete batches of this partition; the rest of `data` is ignored.
    """

    __slots__ = (
        "aborted",
        "data",
        "end_offset",
        "from_offset",
        "is_being_read",
        "last_epoch",
        "next_offset",
        "node",
        "reader",
        "rest",
        "start",
        "whole",
    )

    def __init__(
        self,
        *,
        data: bytes,
        start: int = 0,
        whole: int,
        from_offset: int,
        next_offset: int,
        last_epoch: int,
        end_offset: int,
        aborted: list[tuple[int, int]],
        node: int,
    ) -> None:
        self.data: Final = data
        self.start: Final = start
        self.whole: Final = whole
        self.from_offset: Final = from_offset
        # The offset after the last complete batch, and the leader epoch of that batch.
        self.next_offset: Final = next_offset
        self.last_epoch: Final = last_epoch
        # The end offset of the log for this reader at the time of the response.
        self.end_offset: Final = end_offset
        # (first offset, producer id) of aborted transactions.
        self.aborted: Final = aborted
        # The source broker: buffered bytes are counted per broker.
        self.node: Final = node
        self.is_being_read = False
        self.reader: BatchReader | None = None
        # Decoded messages that were not read because the partition was paused.
        self.rest: list[Message] = []

    @property
    def size(self) -> int:
        """Bytes held in memory."""
        return len(self.data)

    def open(self, topic: str, partition: int, *, check_crc: bool) -> BatchReader:
        if self.reader is None:
            self.reader = BatchReader(
                topic,
                partition,
                self.data,
                self.start,
                self.whole,
                self.from_offset,
                check_crc,
                self.aborted,
            )
        return self.reader


UNKNOWN: Final = -1
# Unread responses per partition in addition to the one being read.
PREFETCH_MAX: Final = 1


class PositionCheck(Enum):
    """Why a known position must be checked."""

    # New leader: its log may lack records that were read.
    LEADER = "leader"
    # The offset is out of range, and the error has to name the range.
    RANGE = "range"


class PartitionState:
    """One assigned partition."""

    __slots__ = (
        "end_due",
        "end_reported_at",
        "epoch",
        "error",
        "error_raised",
        "failures",
        "fetch_offset",
        "generation",
        "high_watermark",
        "in_lookup",
        "is_enqueued",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "missing_count",
        "no_prefetch",
        "paused",
        "pending_check",
        "position",
        "preferred",
        "preferred_until_ms",
        "queue",
        "reset_to",
        "retry_at_s",
        "topic_id",
        "tp",
        "until",
    )

    def __init__(self, tp: TopicPartition, topic_id: Uuid = ZERO_UUID) -> None:
        self.tp: Final = tp
        self.topic_id = topic_id
        self.generation = 0
        # The reader's next offset, None until known, and the leader epoch of the last record read.
        self.position: int | None = None
        self.epoch = UNKNOWN
        # The next offset to fetch: after all data in the queue.
        self.fetch_offset = UNKNOWN
        # Stop fetching at this offset; None: no limit.
        self.until: int | None = None
        # Timestamp to look up with ListOffsets; None if the position is known or there is no reset policy.
        self.reset_to: int | None = None
        # The leader epoch for which the position is validated. (KIP-320)
        self.leader_epoch = UNKNOWN
        # Why the position must be checked before the next fetch.
        self.pending_check: PositionCheck | None = None
        # A lookup for this partition is in flight.
        self.in_lookup = False
        self.paused = False
        self.error: ClientError | None = None
        self.error_raised = False
        # The preferred read replica, and until when it is valid. (KIP-392)
        self.preferred: int | None = None
        self.preferred_until_ms = 0
        # From the last response; UNKNOWN before.
        self.high_watermark = UNKNOWN
        self.last_stable_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.failures = 0
        self.retry_at_s = 0.0
        # Consecutive metadata responses without this partition.
        self.missing_count = 0
        # Do not fetch until the queue is empty.
        self.no_prefetch = False
        self.queue: deque[CompletedFetch] = deque()
        self.is_enqueued = False
        self.end_due = False
        self.end_reported_at = UNKNOWN

    def move_to(self, offset: int, epoch: int = UNKNOWN) -> None:
        """Continue at an offset, and invalidate work in flight for the old position."""
        self._start_generation()
        self.position = self.fetch_offset = offset
        self.epoch = epoch
        # Without an epoch the position cannot be validated: accept the current leader.
        self.leader_epoch = UNKNOWN

    def reset(self, reset_to: int | None) -> None:
        """Continue at the offset that ListOffsets returns."""
        self._start_generation()
        self.position, self.fetch_offset, self.epoch = None, UNKNOWN, UNKNOWN
        self.reset_to = reset_to

    def _start_generation(self) -> None:
        self.generation += 1
        self.reset_to = None
        self.pending_check, self.in_lookup, self.no_prefetch = None, False, False
        self.error, self.error_raised = None, False
        self.failures, self.retry_at_s, self.missing_count = 0, 0.0, 0
        self.end_due, self.end_reported_at = False, UNKNOWN

    def is_fetchable(self, now_s: float) -> bool:
        return (
            self.position is not None
            and self.pending_check is None
            and not self.paused
            and self.error is None
            and now_s >= self.retry_at_s
            and (self.until is None or self.fetch_offset < self.until)
        )

    @property
    def is_full(self) -> bool:
        """Whether enough data is buffered for now."""
        unread = len(self.queue)
        if self.no_prefetch:
            return unread > 0
        return unread > (PREFETCH_MAX if unread and self.queue[0].is_being_read else PREFETCH_MAX - 1)

    def end_offset(self, *, committed: bool) -> int:
        """Return the end for this reader: high watermark, or last stable offset with read_committed."""
        end = self.last_stable_offset if committed else self.high_watermark
        return end if self.until is None else min(end, self.until)


class Positions:
    """The assigned partitions, in fetch order."""

    def __init__(self) -> None:
        self._assigned: dict[TopicPartition, PartitionState] = {}

    def __len__(self) -> int:
        return len(self._assigned)

    def __iter__(self) -> Iterator[PartitionState]:
        return iter(self._assigned.values())

    def __contains__(self, tp: object) -> bool:
        return tp in self._assigned

    @property
    def tps(self) -> frozenset[TopicPartition]:
        return frozenset(self._assigned)

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(tp.topic for tp in self._assigned)

    def find(self, tp: TopicPartition) -> PartitionState | None:
        return self._assigned.get(tp)

    def __getitem__(self, tp: TopicPartition) -> PartitionState:
        found = self._assigned.get(tp)
        if found is None:
            raise NotAssigned(tp)
        return found

    def named(self, tps: Iterable[TopicPartition]) -> list[PartitionState]:
        """Return the given partitions, or all if none is given."""
        return [self[tp] for tp in dict.fromkeys(tps)] or list(self._assigned.values())

    def replace(self, ids: dict[TopicPartition, Uuid], reset_to: int | None) -> list[PartitionState]:
        """Assign exactly these partitions, with their topic ids, and return the removed ones.

        Kept partitions keep their position, unless an error stopped them or their topic was recreated.
        """
        before, self._assigned = self._assigned, {}
        for tp, topic_id in ids.items():
            known = before.get(tp)
            if known is not None and known.error is None and known.topic_id == topic_id:
                self._assigned[tp] = before.pop(tp)
                continue
            fresh = self._assigned[tp] = PartitionState(tp, topic_id)
            fresh.reset(reset_to)
        return list(before.values())

    def move_to_end(self, one: PartitionState) -> None:
        """Move a partition that got records to the end of the fetch order."""
        if self._assigned.get(one.tp) is one:
            del self._assigned[one.tp]
            self._assigned[one.tp] = one
