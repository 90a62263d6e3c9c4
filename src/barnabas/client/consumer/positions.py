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


class Arrived:
    """The unread data of one partition in one fetch response.

    `data[start:whole]` holds complete batches of this partition; the rest of `data` is ignored.
    """

    __slots__ = (
        "aborted",
        "begun",
        "data",
        "end_offset",
        "from_offset",
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
        self.begun = False
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
AHEAD_MAX: Final = 1


class Doubt(Enum):
    """Why a known position must be checked."""

    # New leader: its log may lack records that were read.
    LEADER = "leader"
    # The offset is out of range, and the error has to name the range.
    RANGE = "range"


class Assigned:
    """One assigned partition."""

    __slots__ = (
        "busy",
        "doubt",
        "end_due",
        "end_told_at",
        "epoch",
        "error",
        "error_told",
        "failures",
        "fetch_offset",
        "generation",
        "high_watermark",
        "in_turn",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "missing",
        "no_ahead",
        "not_before_s",
        "paused",
        "position",
        "preferred",
        "preferred_until_ms",
        "queue",
        "reset_to",
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
        self.doubt: Doubt | None = None
        # A lookup for this partition is in flight.
        self.busy = False
        self.paused = False
        self.error: ClientError | None = None
        self.error_told = False
        # The preferred read replica, and until when it is valid. (KIP-392)
        self.preferred: int | None = None
        self.preferred_until_ms = 0
        # From the last response; UNKNOWN before.
        self.high_watermark = UNKNOWN
        self.last_stable_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.failures = 0
        self.not_before_s = 0.0
        # Consecutive metadata responses without this partition.
        self.missing = 0
        # Do not fetch until the queue is empty.
        self.no_ahead = False
        self.queue: deque[Arrived] = deque()
        self.in_turn = False
        self.end_due = False
        self.end_told_at = UNKNOWN

    def move_to(self, offset: int, epoch: int = UNKNOWN) -> None:
        """Continue at an offset, and invalidate work in flight for the old position."""
        self._begin_anew()
        self.position = self.fetch_offset = offset
        self.epoch = epoch
        # Without an epoch the position cannot be validated: accept the current leader.
        self.leader_epoch = UNKNOWN

    def move_by(self, reset_to: int | None) -> None:
        """Continue at the offset that ListOffsets returns."""
        self._begin_anew()
        self.position, self.fetch_offset, self.epoch = None, UNKNOWN, UNKNOWN
        self.reset_to = reset_to

    def _begin_anew(self) -> None:
        self.generation += 1
        self.reset_to = None
        self.doubt, self.busy, self.no_ahead = None, False, False
        self.error, self.error_told = None, False
        self.failures, self.not_before_s, self.missing = 0, 0.0, 0
        self.end_due, self.end_told_at = False, UNKNOWN

    def is_fetchable(self, now_s: float) -> bool:
        return (
            self.position is not None
            and self.doubt is None
            and not self.paused
            and self.error is None
            and now_s >= self.not_before_s
            and (self.until is None or self.fetch_offset < self.until)
        )

    @property
    def is_full(self) -> bool:
        """Whether enough data is buffered for now."""
        unread = len(self.queue)
        if self.no_ahead:
            return unread > 0
        return unread > (AHEAD_MAX if unread and self.queue[0].begun else AHEAD_MAX - 1)

    def end_offset(self, *, committed: bool) -> int:
        """Return the end for this reader: high watermark, or last stable offset with read_committed."""
        end = self.last_stable_offset if committed else self.high_watermark
        return end if self.until is None else min(end, self.until)


class Positions:
    """The assigned partitions, in fetch order."""

    def __init__(self) -> None:
        self._assigned: dict[TopicPartition, Assigned] = {}

    def __len__(self) -> int:
        return len(self._assigned)

    def __iter__(self) -> Iterator[Assigned]:
        return iter(self._assigned.values())

    def __contains__(self, tp: object) -> bool:
        return tp in self._assigned

    @property
    def tps(self) -> frozenset[TopicPartition]:
        return frozenset(self._assigned)

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(tp.topic for tp in self._assigned)

    def find(self, tp: TopicPartition) -> Assigned | None:
        return self._assigned.get(tp)

    def __getitem__(self, tp: TopicPartition) -> Assigned:
        found = self._assigned.get(tp)
        if found is None:
            raise NotAssigned(tp)
        return found

    def named(self, tps: Iterable[TopicPartition]) -> list[Assigned]:
        """Return the given partitions, or all if none is given."""
        return [self[tp] for tp in dict.fromkeys(tps)] or list(self._assigned.values())

    def replace(self, ids: dict[TopicPartition, Uuid], reset_to: int | None) -> list[Assigned]:
        """Assign exactly these partitions, with their topic ids, and return the removed ones.

        Kept partitions keep their position, unless an error stopped them or their topic was recreated.
        """
        before, self._assigned = self._assigned, {}
        for tp, topic_id in ids.items():
            known = before.get(tp)
            if known is not None and known.error is None and known.topic_id == topic_id:
                self._assigned[tp] = before.pop(tp)
                continue
            fresh = self._assigned[tp] = Assigned(tp, topic_id)
            fresh.move_by(reset_to)
        return list(before.values())

    def serve_last(self, one: Assigned) -> None:
        """Move a partition that got records to the end of the fetch order."""
        if self._assigned.get(one.tp) is one:
            del self._assigned[one.tp]
            self._assigned[one.tp] = one
