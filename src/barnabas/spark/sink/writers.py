"""Choose the writer for the delivery guarantee and transaction scope.

The at-least-once writers are here. They may write the rows of a task or micro-batch that is retried again.
"""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from barnabas.client.blocking.producer import Producer
from barnabas.spark.failures import log_failed_write
from barnabas.spark.options.sink import Guarantee, Scope, SinkOptions
from barnabas.spark.sink.availability import check_brokers
from barnabas.spark.sink.sending import Sending
from barnabas.spark.sink.slots import SlotBatchWriter, SlotStreamWriter
from barnabas.spark.sink.whole_batch import WholeBatchWriter, WholeStreamWriter


def _write(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
    with log_failed_write():
        check_brokers(options.producer, options.connect_ms)
        with Producer(options.producer) as producer:
            Sending(producer, options).send(batches)
    return WriterCommitMessage()


class AtLeastOnceBatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self._options, iterator)


class AtLeastOnceStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self._options, iterator)


_EXACT_BATCH: Final = {Scope.TASK: SlotBatchWriter, Scope.BATCH: WholeBatchWriter}
_EXACT_STREAM: Final = {Scope.TASK: SlotStreamWriter, Scope.BATCH: WholeStreamWriter}


def batch_writer(options: SinkOptions) -> DataSourceArrowWriter:
    if options.guarantee is Guarantee.AT_LEAST_ONCE:
        return AtLeastOnceBatchWriter(options)
    return _EXACT_BATCH[options.scope](options)


def stream_writer(options: SinkOptions) -> DataSourceStreamArrowWriter:
    if options.guarantee is Guarantee.AT_LEAST_ONCE:
        return AtLeastOnceStreamWriter(options)
    return _EXACT_STREAM[options.scope](options)
