"""At-least-once writers: rows of a task or micro-batch that is retried may be written more than once."""

import logging
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from barnabas.client.blocking.producer import Producer
from barnabas.spark.options.sink import SinkOptions
from barnabas.spark.sink.reaching import reach
from barnabas.spark.sink.sending import Sending
from barnabas.spark.sink.telling import told_on_failure

logger = logging.getLogger(__name__)


def _write(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
    with told_on_failure():
        reach(options.producer, options.connect_ms)
        with Producer(options.producer) as producer:
            Sending(producer, options).send(batches)
    return WriterCommitMessage()


class PlainBatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self._options, iterator)


class PlainStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self._options, iterator)
