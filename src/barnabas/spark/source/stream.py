"""The stream reader: start offsets, the end of the next micro-batch, and its tasks.

Spark keeps one reader on the driver while a query runs, and creates others that only read(). Progress is
committed in latestOffset(), which Spark calls at every trigger with the end of the last completed micro-batch
as `start`. (Spark's commit() comes one micro-batch late, and never for the last one.)
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
from barnabas.spark.failures import message_first
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

# Offsets as Spark passes them: {"orders": {"0": 23}}.
Told: TypeAlias = dict[str, Any]
_MS_PER_NS: Final = 1_000_000


class _Planned(NamedTuple):
    """A planned micro-batch. Spark knows only `at` and `end`; after data loss it starts at `begin`."""

    at: Offsets
    end: Offsets
    begin: Offsets
    topic_ids: Mapping[str, Uuid]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Pickled for tasks right after construction; connections are opened later and stay on the driver."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._waiting = Waiting(options.offsets_min or 0, options.wait_max_ms)
        self._cluster_or_none: Cluster | None = None
        self._progress = Progress(options)
        # Cached: Spark calls initialOffset() repeatedly, and the result must not change.
        self._initial: dict[TopicPartition, int] | None = None
        self._anchored = False
        # The end offsets for the trigger AvailableNow.
        self._until: dict[TopicPartition, int] | None = None
        self._latest: dict[TopicPartition, int] | None = None
        self._planned: _Planned | None = None
        self._topics = TopicIds()
        self._absences = Absences()

    # Offsets

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
            # "latest" would resolve differently on replay: batch 0 is empty and only fixes the start offsets.
            self._anchored = True
            return start
        if self._until is not None:
            ends = {tp: min(ends[tp], offset) for tp, offset in self._until.items() if tp in ends}
        now = self._absences.returned(at, look.absent, look.topic_ids)
        just_gone = self._absences.note(at, look.absent, self._topics.seen)
        remade = self._topics.remade(at, look.topic_ids)
        # The loss of partitions that were absent before has already been reported.
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
        """Return the end offsets, or the query's own offset where it is beyond the last stable offset."""
        beyond = [tp for tp in ends if at.get(tp, 0) > ends[tp]]
        written = self._cluster().written(beyond) if beyond else {}
        return {**ends, **{tp: min(at[tp], offset) for tp, offset in written.items()}}

    def _begin(
        self, at: Offsets, earliest: Offsets, ends: Offsets, remade: Collection[str] = ()
    ) -> dict[TopicPartition, int]:
        """Return where the next micro-batch begins in every existing partition. Logs or raises data loss."""
        resumed = resume(at, earliest, ends, remade=remade)
        if resumed.losses and self._options.fails_on_loss:
            raise DataLoss("; ".join(resumed.losses))
        for loss in resumed.losses:
            logger.warning("records lost: %s", loss)
        return resumed.start

    def _limited(self, begin: Offsets, ends: Offsets, limit: ReadLimit) -> Offsets | None:
        """Return where the next micro-batch ends; None if it has to wait."""
        reachable = {tp: max(offset, begin[tp]) for tp, offset in ends.items()}
        if isinstance(limit, ReadAllAvailable):
            return reachable
        # AvailableNow reads a fixed range, so a micro-batch has no further offsets to wait for.
        if self._options.offsets_min is not None and self._until is None:
            now_ms = time.monotonic_ns() // _MS_PER_NS
            if self._waiting.must_wait(begin, reachable, now_ms):
                return None
        if self._options.offsets_max is None:
            return reachable
        return limited(begin, reachable, self._options.offsets_max)

    # Tasks

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
        # A micro-batch that another process planned carries no topic ids.
        ids = {} if planned is None else planned.topic_ids
        return [
            RangePartition(one, told if number == 0 else None, topic_id=ids.get(one.tp.topic))
            for number, one in enumerate(tasks)
        ]

    def _planned_begin(self, at: Offsets, to: Offsets) -> Offsets:
        """Return where the micro-batch from `at` to `to` begins."""
        planned = self._plan_of(at, to)
        if planned is not None:
            return planned.begin
        # Another process planned this micro-batch before the query was restarted.
        if at == self._initial:
            # Micro-batch 0: ignore partitions added since, and start offsets that have moved past its end.
            moved = moves(self._options.start)
            at = {tp: min(offset, to[tp]) if moved else offset for tp, offset in at.items() if tp in to}
        # Partitions that were absent when it was planned end at 0.
        at = {tp: 0 if to.get(tp) == 0 else offset for tp, offset in at.items()}
        unsure = [tp for tp in to if at.get(tp, to[tp] + 1) > to[tp]]
        there = self._cluster().earliest_there(unsure) if unsure else {}
        return self._begin(at, {**at, **dict.fromkeys(unsure, 0), **there}, to)

    def _plan_of(self, at: Offsets, to: Offsets) -> _Planned | None:
        found = self._planned
        return found if found is not None and (found.at, found.end) == (at, to) else None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition, self._options, self._columns)

    # Connection

    def _cluster(self) -> Cluster:
        if self._cluster_or_none is None:
            self._cluster_or_none = Cluster(self._options)
        return self._cluster_or_none

    def stop(self) -> None:
        if self._cluster_or_none is not None:
            self._cluster_or_none.close()
            self._cluster_or_none = None


class WrongStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A reader for invalid options, which raises the error at the first call.

    If streamReader() raised it, Spark 4.3 would hide it behind an error of its own (it calls stop() of the
    reader that was never created).
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
    """Convert offsets in the order of to_json(), because Spark compares them as text."""
    told: Told = json.loads(to_json(offsets))
    return told


def _offsets(told: Told) -> dict[TopicPartition, int]:
    return from_json(json.dumps(told))
