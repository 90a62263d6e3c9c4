"""format("barnabas"): options in, readers and writers out."""

import logging
import os
from typing import Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from barnabas.spark import columns
from barnabas.spark.options.sink import Guarantee, Scope, SinkOptions, sink_options
from barnabas.spark.options.source import batch_options, stream_options
from barnabas.spark.options.values import Values
from barnabas.spark.sink.plain import PlainBatchWriter, PlainStreamWriter
from barnabas.spark.sink.rows import check_schema
from barnabas.spark.sink.slots import SlotBatchWriter, SlotStreamWriter
from barnabas.spark.sink.whole_batch import WholeBatchWriter, WholeStreamWriter
from barnabas.spark.source.batch import BatchReader
from barnabas.spark.source.filters import FilteredReader, are_pushed
from barnabas.spark.source.stream import StreamReader

logger = logging.getLogger(__name__)

_EXACT_BATCH: Final = {Scope.TASK: SlotBatchWriter, Scope.BATCH: WholeBatchWriter}
_EXACT_STREAM: Final = {Scope.TASK: SlotStreamWriter, Scope.BATCH: WholeStreamWriter}


class BarnabasDataSource(DataSource):
    """Topics of any Kafka cluster."""

    @classmethod
    def name(cls) -> str:
        return "barnabas"

    def _values(self) -> Values:
        return Values(dict(self.options.items()))

    def schema(self) -> StructType:
        return columns.schema(headers=self._values().flag("includeHeaders", False))

    def reader(self, schema: StructType) -> DataSourceReader:
        options = batch_options(self._values())
        if options.ignored:
            logger.warning("no effect in a batch query options=%s", ",".join(options.ignored))
        made = FilteredReader if options.pushes_filters and are_pushed() else BatchReader
        return made(options, columns.asked_columns(schema, headers=options.includes_headers))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = stream_options(self._values())
        return StreamReader(options, columns.asked_columns(schema, headers=options.includes_headers))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        options = self._sink_options(schema, overwrite)
        if options.guarantee is Guarantee.AT_LEAST_ONCE:
            return PlainBatchWriter(options)
        return _EXACT_BATCH[options.scope](options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        # Spark asks to overwrite with output mode complete: its own sink appends the whole result again, too.
        options = self._sink_options(schema, overwrite=False)
        if options.guarantee is Guarantee.AT_LEAST_ONCE:
            return PlainStreamWriter(options)
        return _EXACT_STREAM[options.scope](options)

    def _sink_options(self, schema: StructType, overwrite: bool) -> SinkOptions:
        options = sink_options(self._values(), overwrite=overwrite, directory=os.getcwd())
        check_schema(schema, options.topic)
        return options
