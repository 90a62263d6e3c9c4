"""The batch reader: resolves start and end offsets once, when its tasks are planned."""

import logging
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from barnabas.spark.failures import message_first
from barnabas.spark.offsets import Offsets
from barnabas.spark.options.positions import Place, option_of
from barnabas.spark.options.source import SourceOptions
from barnabas.spark.options.values import BadOption
from barnabas.spark.planning.changes import resume
from barnabas.spark.planning.pruning import Wanted
from barnabas.spark.planning.splits import ranges_between, split
from barnabas.spark.source.cluster import Cluster
from barnabas.spark.source.ranges import DataLoss
from barnabas.spark.source.tasks import RangePartition, read_task

logger = logging.getLogger(__name__)


class BatchReader(DataSourceReader):
    """Pickled for the tasks; holds no connection."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        # Narrowed by filters that are pushed down.
        self.wanted = Wanted()

    @message_first()
    def partitions(self) -> Sequence[RangePartition]:
        options = self._options
        with Cluster(options) as cluster:
            tps = cluster.partitions()
            earliest, latest = cluster.earliest(tps), cluster.latest(tps)
            start = cluster.resolve(options.start, tps, "starting")
            end = cluster.resolve(options.end, tps, "ending")
            since = cluster.first_since(self.wanted.since_ms, tps)
            ids = cluster.topic_ids
        _check_forward(options, start, end)
        # An empty range cannot lose data.
        read = {tp: offset for tp, offset in start.items() if offset < end[tp]}
        resumed = resume(read, *({tp: ends[tp] for tp in read} for ends in (earliest, latest)))
        if resumed.losses and options.fails_on_loss:
            raise DataLoss("; ".join(resumed.losses))
        for loss in resumed.losses:
            logger.warning("records lost: %s", loss)
        # resume() restarts recreated topics at the beginning; a batch query never reads before its start.
        begin = {tp: max(resumed.start.get(tp, offset), offset) for tp, offset in start.items()}
        ranges = self.wanted.pruned(ranges_between(begin, end), since)
        tasks = split(ranges, min_partitions=options.min_partitions, records_max=options.records_max)
        return [RangePartition(one, topic_id=ids.get(one.tp.topic)) for one in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition, self._options, self._columns)


def _check_forward(options: SourceOptions, start: Offsets, end: Offsets) -> None:
    """Reject a resolved start after the end, which the options alone do not show, as with timestamps."""
    to_the_end = options.end is Place.LATEST
    name = option_of(options.start, "starting") if to_the_end else option_of(options.end, "ending")
    for tp in sorted(start):
        if start[tp] > end[tp]:
            raise BadOption(name, f"{tp} ends at {end[tp]}, before it starts at {start[tp]}")
