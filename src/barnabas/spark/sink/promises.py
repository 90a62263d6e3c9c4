"""Chooses the writer for the delivery guarantee and transaction scope."""

from typing import Final

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter

from barnabas.spark.options.sink import Guarantee, Scope, SinkOptions
from barnabas.spark.sink.plain import PlainBatchWriter, PlainStreamWriter
from barnabas.spark.sink.slots import SlotBatchWriter, SlotStreamWriter
from barnabas.spark.sink.whole_batch import WholeBatchWriter, WholeStreamWriter

_EXACT_BATCH: Final = {Scope.TASK: SlotBatchWriter, Scope.BATCH: WholeBatchWriter}
_EXACT_STREAM: Final = {Scope.TASK: SlotStreamWriter, Scope.BATCH: WholeStreamWriter}


def batch_writer(options: SinkOptions) -> DataSourceArrowWriter:
    if options.guarantee is Guarantee.AT_LEAST_ONCE:
        return PlainBatchWriter(options)
    return _EXACT_BATCH[options.scope](options)


def stream_writer(options: SinkOptions) -> DataSourceStreamArrowWriter:
    if options.guarantee is Guarantee.AT_LEAST_ONCE:
        return PlainStreamWriter(options)
    return _EXACT_STREAM[options.scope](options)
