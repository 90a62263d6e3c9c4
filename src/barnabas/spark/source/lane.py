"""One consumer of one partition, and its position in the assigned range."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pyarrow as pa

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.blocking.consumer import Consumer
from barnabas.client.consumer.errors import NoOffset
from barnabas.client.consumer.message import EndOfPartition
from barnabas.client.errors import RequestTimedOut
from barnabas.spark.planning.splits import OffsetRange


class Lane:
    """Fetches the range given to begin() in the background."""

    def __init__(
        self, consumer: Consumer, tp: TopicPartition, tables: "Iterator[pa.Table | EndOfPartition]"
    ) -> None:
        self.consumer = consumer
        self.wanted = OffsetRange(tp, 0, 0)
        # The offset after the last row of a response, or after a gap behind it.
        self.position = 0
        # Number of offsets in the first response; 0 before there is one.
        self.span = 0
        self._tables = tables
        self._ended_at: int | None = None

    def begin(self, wanted: OffsetRange) -> None:
        self.consumer.seek(wanted.tp, wanted.start, until=wanted.end)
        self.wanted, self.position, self.span, self._ended_at = wanted, wanted.start, 0, None

    @property
    def done(self) -> bool:
        return self.position >= self.wanted.end

    def next_table(self) -> pa.Table | None:
        """Return a whole response, whose last rows may be beyond the range. None if the range is complete.

        An end of the log before the end of the range may be temporary: a new leader or a follower can lag
        behind the end that was planned with. So fetching continues until the task's timeout. Raises NoOffset
        if the log still ends there, or begins after the position.
        """
        while not self.done:
            try:
                found = next(self._tables)
            except RequestTimedOut:
                if self._ended_at is not None:
                    self._check_there(self._ended_at)
                raise
            if not isinstance(found, EndOfPartition):
                self._reach(found["offset"][-1].as_py() + 1)
                return found
            if found.offset >= self.wanted.end:
                self._reach(found.offset)
            else:
                self._ended_at = found.offset
        return None

    def _reach(self, position: int) -> None:
        self.position = position
        self.span = self.span or position - self.wanted.start

    def _check_there(self, offset: int) -> None:
        tp, consumer = self.wanted.tp, self.consumer
        [first], [last] = (ends([tp]).values() for ends in (consumer.beginning_offsets, consumer.end_offsets))
        if last <= offset:
            raise NoOffset(tp, offset, first, last)


@contextmanager
def lane_of(
    consumer: Consumer, tp: TopicPartition, topic_id: Uuid | None, timeout_ms: float
) -> Iterator[Lane]:
    consumer.assign([tp], topic_ids={} if topic_id is None else {tp.topic: topic_id})
    # max_rows=1 returns one response at a time.
    with closing(consumer.arrow(max_rows=1, views=True, timeout_ms=timeout_ms)) as tables:
        yield Lane(consumer, tp, tables)
