"""The input partition of a Spark task and the function that reads it."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from barnabas.base.ids import Uuid
from barnabas.spark.failures import message_first
from barnabas.spark.options.client_settings import in_time
from barnabas.spark.options.source import SourceOptions
from barnabas.spark.planning.splits import OffsetRange
from barnabas.spark.source.progress import Announcement, announce
from barnabas.spark.source.ranges import read_range
from barnabas.spark.workers import settle_in


class RangePartition(InputPartition):
    """One task: a range of offsets, and for one task of a micro-batch the progress that it announces.

    `topic_id` is the id with which the range was planned, if known.
    """

    def __init__(
        self, wanted: OffsetRange, announcement: Announcement | None = None, *, topic_id: Uuid | None = None
    ) -> None:
        super().__init__(tuple(wanted))
        self.wanted = wanted
        self.announcement = announcement
        self.topic_id = topic_id


def read_task(
    partition: InputPartition, options: SourceOptions, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, RangePartition):
        # For an empty list of partitions Spark creates a dummy partition.
        assert partition.value is None, f"not a task of this source: {partition!r}"
        return
    with message_first():
        settle_in()
        client = in_time(options.client, options.poll_timeout_ms)
        if partition.announcement is not None:
            announce(partition.announcement, client)
        yield from read_range(
            partition.wanted,
            client,
            columns,
            fails_on_loss=options.fails_on_loss,
            timeout_ms=options.poll_timeout_ms,
            topic_id=partition.topic_id,
            fetches=options.fetches,
        )
