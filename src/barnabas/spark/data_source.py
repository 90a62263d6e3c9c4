"""format("barnabas"): options in, readers and writers out."""

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from barnabas.spark import columns
from barnabas.spark.options.source import batch_options, stream_options
from barnabas.spark.options.values import Values
from barnabas.spark.source.batch import BatchReader
from barnabas.spark.source.stream import StreamReader


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
        return BatchReader(options, columns.asked_columns(schema, headers=options.includes_headers))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = stream_options(self._values())
        return StreamReader(options, columns.asked_columns(schema, headers=options.includes_headers))
