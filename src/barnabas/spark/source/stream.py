"""A stream: where it is, how far its next micro-batch goes, and which tasks read it.

Spark keeps one of these for as long as a query runs, and makes others that only read(). What is asked for in
latestOffset() as `start` has been done: that is when progress is committed, and it comes at every trigger.
(Spark's commit() comes one batch late, and never for the last one.)
"""

import json
import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from barnabas.base.errors import BarnabasError
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.spark.failing import message_first
from barnabas.spark.offsets import Offsets, from_json, to_json
from barnabas.spark.options.positions import moves
from barnabas.spark.options.source import SourceOptions
from barnabas.spark.planning.changes import Absences, TopicIds, apart, resume
from barnabas.spark.planning.limits import Waiting, limited
from barnabas.spark.planning.splits import ranges_between, split
from barnabas.spark.source.cluster import Cluster
from barnabas.spark.source.progress import Progress
from barnabas.spark.source.ranges import DataLoss
from barnabas.spark.source.tasks import RangePartition, read_task

logger = logging.getLogger(__name__)

# Spark's offsets, as it hands them over: {"orders": {"0": 23}}.
Told: TypeAlias = dict[str, Any]
_MS_PER_NS: Final = 1_000_000


class _Planned(NamedTuple):
    """A batch as it was decided. Spark knows it by two offsets only, and not where it begins after a loss."""

    at: Offsets
    end: Offsets
    begin: Offsets
    topic_ids: Mapping[str, Uuid]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Goes to tasks as it is when it was made: connections come later, and stay on the driver."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._waiting = Waiting(options.offsets_min or 0, options.wait_max_ms)
        self._cluster_or_none: Cluster | None = None
        self._progress = Progress(options)
        # Asked for again and again, and must not move meanwhile.
        self._initial: dict[TopicPartition, int] | None = None
        self._anchored = False
        # As far as AvailableNow goes.
        self._until: dict[TopicPartition, int] | None = None
        self._latest: dict[TopicPartition, int] | None = None
        self._planned: _Planned | None = None
        self._topics = TopicIds()
        self._absences = Absences()

    # Where it is

    @message_first()
    def initialOffset(self) -> Told:
        if self._initial is None:
            cluster = self._cluster()
            self._initial = cluster.resolve(self._options.start, cluster.partitions(), "starting")
            self._topics.note(cluster.topic_ids)
        return _told(self._initial)

    @message_first()
    def prepareForTriggerAvailableNow(self) -> None:
        self._until = self._cluster().ends()

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.offsets_max is not None:
            return ReadMaxRows(self._options.offsets_max)
        if self._options.offsets_min is not None:
            return ReadMinRows(self._options.offsets_min)
        return ReadAllAvailable()

    @message_first()
    def latestOffset(self, start: Told, limit: ReadLimit) -> Told:
        at = _offsets(start)
        look = self._cluster().look(at)
        self._cluster().is_running = True
        self._latest = ends = look.latest
        self._progress.reached(self._cluster().admin, {tp: at[tp] for tp in at if tp in ends})
        if not self._anchored and at == self._initial and moves(self._options.start):
            # Not replayed alike if this batch fails: so the first one is empty, and only says where to begin.
            self._anchored = True
            return start
        if self._until is not None:
            ends = {tp: min(ends[tp], offset) for tp, offset in self._until.items() if tp in ends}
        now = self._absences.returned(at, look.absent, look.topic_ids)
        just_gone = self._absences.note(at, look.absent, self._topics.seen)
        remade = self._topics.remade(at, look.topic_ids)
        # What has been gone for longer was told then.
        known = {tp: offset for tp, offset in now.items() if tp not in look.absent or tp in just_gone}
        begin = self._begin(known, look.earliest, self._reachable(now, ends), remade)
        end = self._limited(begin, ends, limit)
        if end is None:
            if not just_gone:
                return start
            end = begin
        gone = dict.fromkeys(look.absent, 0)
        begin, end = {**begin, **gone}, {**end, **gone}
        self._planned = _Planned(at, apart(at, begin, end), begin, look.topic_ids)
        return _told(self._planned.end)

    def reportLatestOffset(self) -> Told | None:
        return None if self._latest is None else _told(self._latest)

    def _reachable(self, at: Offsets, ends: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The ends; where a query is beyond the last stable offset, which may be, then where it is."""
        beyond = [tp for tp in ends if at.get(tp, 0) > ends[tp]]
        written = self._cluster().written(beyond) if beyond else {}
        return {**ends, **{tp: min(at[tp], offset) for tp, offset in written.items()}}

    def _begin(
        self, at: Offsets, earliest: Offsets, ends: Offsets, remade: Collection[str] = ()
    ) -> dict[TopicPartition, int]:
        """Where the next batch begins, in every partition that there is now; what is lost is told."""
        resumed = resume(at, earliest, ends, remade=remade)
        if resumed.losses and self._options.fails_on_loss:
            raise DataLoss("; ".join(resumed.losses))
        for loss in resumed.losses:
            logger.warning("records lost: %s", loss)
        return resumed.start

    def _limited(self, begin: Offsets, ends: Offsets, limit: ReadLimit) -> Offsets | None:
        """How far the next batch goes; None if it has to wait."""
        reachable = {tp: max(offset, begin[tp]) for tp, offset in ends.items()}
        if isinstance(limit, ReadAllAvailable):
            return reachable
        # AvailableNow reads all that was there: nothing more comes that a batch could wait for.
        if self._options.offsets_min is not None and self._until is None:
            now_ms = time.monotonic_ns() // _MS_PER_NS
            if self._waiting.must_wait(begin, reachable, now_ms):
                return None
        if self._options.offsets_max is None:
            return reachable
        return limited(begin, reachable, self._options.offsets_max)

    # What tasks do

    @message_first()
    def partitions(self, start: Told, end: Told) -> Sequence[InputPartition]:
        at, to = _offsets(start), _offsets(end)
        begin = self._planned_begin(at, to)
        ranges = ranges_between(begin, to)
        tasks = split(
            ranges, min_partitions=self._options.min_partitions, records_max=self._options.records_max
        )
        told = self._progress.announcement(begin)
        planned = self._plan_of(at, to)
        # Of a batch that another process has planned nobody knows which topics it meant.
        ids = {} if planned is None else planned.topic_ids
        return [
            RangePartition(one, told if number == 0 else None, topic_id=ids.get(one.tp.topic))
            for number, one in enumerate(tasks)
        ]

    def _planned_begin(self, at: Offsets, to: Offsets) -> Offsets:
        """Where a batch begins that Spark knows as from `at` to `to`."""
        planned = self._plan_of(at, to)
        if planned is not None:
            return planned.begin
        # Else another process has planned it, before the query was started anew.
        if at == self._initial:
            # Its first batch: what has come to be or moved since then is behind us.
            moved = moves(self._options.start)
            at = {tp: min(offset, to[tp]) if moved else offset for tp, offset in at.items() if tp in to}
        # Those that were gone by then.
        at = {tp: 0 if to.get(tp) == 0 else offset for tp, offset in at.items()}
        unsure = [tp for tp in to if at.get(tp, to[tp] + 1) > to[tp]]
        there = self._cluster().earliest_there(unsure) if unsure else {}
        return self._begin(at, {**at, **dict.fromkeys(unsure, 0), **there}, to)

    def _plan_of(self, at: Offsets, to: Offsets) -> _Planned | None:
        found = self._planned
        return found if found is not None and (found.at, found.end) == (at, to) else None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition, self._options, self._columns)

    # Beginning and end

    def _cluster(self) -> Cluster:
        if self._cluster_or_none is None:
            self._cluster_or_none = Cluster(self._options)
        return self._cluster_or_none

    def stop(self) -> None:
        if self._cluster_or_none is not None:
            self._cluster_or_none.close()
            self._cluster_or_none = None


class WrongStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Of a stream whose options are wrong: whatever it is asked for first fails with what is wrong with them.

    Were that raised where a reader is made, Spark 4.3 would fail with an error of its own instead, which says
    nothing (it calls stop() of the reader that was not made).
    """

    def __init__(self, wrong: BarnabasError) -> None:
        self._wrong = wrong

    @message_first()
    def _fail(self) -> NoReturn:
        raise self._wrong

    def initialOffset(self) -> Told:
        self._fail()

    def prepareForTriggerAvailableNow(self) -> None:
        self._fail()

    def latestOffset(self, start: Told, limit: ReadLimit) -> Told:
        self._fail()

    def partitions(self, start: Told, end: Told) -> Sequence[InputPartition]:
        self._fail()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        self._fail()


def _told(offsets: Offsets) -> Told:
    """In the order in which to_json() has it: Spark compares texts."""
    told: Told = json.loads(to_json(offsets))
    return told


def _offsets(told: Told) -> dict[TopicPartition, int]:
    return from_json(json.dumps(told))
