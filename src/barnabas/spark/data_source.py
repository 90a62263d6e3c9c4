"""The data source of format("barnabas"): parses options and creates readers and writers.

Spark starts separate Python processes to discover the source, to create it, and to read or write. Readers and
writers are therefore imported where they are created, so that no process imports modules it does not use.
"""

import logging
import os

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from barnabas.base.errors import BarnabasError
from barnabas.spark import columns
from barnabas.spark.failures import message_first
from barnabas.spark.options.sink import SinkOptions, sink_options
from barnabas.spark.options.source import batch_options, stream_options
from barnabas.spark.options.values import Values

logger = logging.getLogger(__name__)


class BarnabasDataSource(DataSource):
    """Topics of any Kafka cluster."""

    @classmethod
    def name(cls) -> str:
        return "barnabas"

    def _values(self, kind: str = "source") -> Values:
        return Values(dict(self.options.items()), kind)

    @message_first()
    def schema(self) -> StructType:
        return columns.schema(headers=self._values().flag("includeHeaders", False))

    @message_first()
    def reader(self, schema: StructType) -> DataSourceReader:
        from barnabas.spark.source.batch import BatchReader
        from barnabas.spark.source.filters import FilteredReader, are_pushed

        options = batch_options(self._values())
        if options.ignored:
            logger.warning("options ignored in batch query options=%s", ",".join(options.ignored))
        made = FilteredReader if options.pushes_filters and are_pushed() else BatchReader
        return made(options, columns.asked_columns(schema, headers=options.includes_headers))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from barnabas.spark.source.stream import StreamReader, WrongStreamReader

        try:
            options = stream_options(self._values())
            return StreamReader(options, columns.asked_columns(schema, headers=options.includes_headers))
        except BarnabasError as wrong:
            return WrongStreamReader(wrong)

    @message_first()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from barnabas.spark.sink.writers import batch_writer

        return batch_writer(self._sink_options(schema, overwrite))

    @message_first()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        from barnabas.spark.sink.writers import stream_writer

        # Spark sets overwrite for output mode complete; as with its own sink, the whole result is appended.
        return stream_writer(self._sink_options(schema, overwrite=False))

    def _sink_options(self, schema: StructType, overwrite: bool) -> SinkOptions:
        from barnabas.spark.sink.rows import check_schema

        options = sink_options(self._values("sink"), overwrite=overwrite, directory=os.getcwd())
        check_schema(schema, options.topic)
        return options
