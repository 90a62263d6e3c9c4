"""Sends Arrow batches with a producer and waits for every delivery."""

import logging
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking.delivery import Delivery
from barnabas.client.blocking.producer import Producer
from barnabas.spark.options.sink import SinkOptions
from barnabas.spark.sink.availability import check_topic
from barnabas.spark.sink.rows import by_topic
from barnabas.spark.workers import settle_in

logger = logging.getLogger(__name__)

# Limit of deliveries whose results have not been awaited.
_UNSEEN_MAX: Final = 256


class Sending:
    def __init__(self, producer: Producer, options: SinkOptions) -> None:
        self._producer = producer
        self._options = options
        self._unseen: list[Delivery] = []
        self.rows = 0
        self.written: set[TopicPartition] = set()

    def send(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Send all rows and wait for their delivery. Raises the first error."""
        settle_in()
        for batch in batches:
            if batch.num_rows == 0:
                continue
            for topic, records in by_topic(batch, self._options.topic):
                check_topic(self._options.producer, topic, self._options.connect_ms)
                self._unseen += self._producer.send_table(topic, records)
            self.rows += batch.num_rows
            if len(self._unseen) > _UNSEEN_MAX:
                self._see(len(self._unseen) // 2)
        self._see(len(self._unseen))

    def _see(self, count: int) -> None:
        for delivery in self._unseen[:count]:
            placed = delivery.result()
            self.written.add(TopicPartition(placed.topic, placed.partition))
        del self._unseen[:count]
