"""Reads a range of offsets in a task, as Arrow batches decoded directly from record batches.

Offsets have gaps after compaction and at aborted transactions and transaction markers, so a range is complete
when the position reaches its end, however many rows it had.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa

from barnabas.base.errors import BarnabasError
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.consumer.errors import NoOffset, TopicRecreated
from barnabas.client.errors import ClientError, UnknownTopic, is_retriable
from barnabas.spark.columns import arrow_schema, rows_of
from barnabas.spark.options.client_settings import in_time
from barnabas.spark.planning.splits import OffsetRange
from barnabas.spark.source.consumer_cache import cached_consumer, discard_consumers
from barnabas.spark.source.fetching import tables_of

logger = logging.getLogger(__name__)

_DECIDED_HERE: Final = {
    "auto.offset.reset": "none",
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    # Reading must not recreate a deleted topic.
    "allow.auto.create.topics": "false",
}
# Defaults for reading at full speed, where the fixed cost of a response matters. Users may override them.
_FOR_RANGES: Final = {"max.partition.fetch.bytes": str(14 << 20), "fetch.max.wait.ms": "100"}
# How long a broker may have stale metadata about a recreated topic.
_BEHIND_MS_MAX: Final = 10_000.0
_LOOK_AGAIN_S: Final = 0.2


class DataLoss(BarnabasError):
    """Offsets that a query had to read no longer exist, and failOnDataLoss is true."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} (to skip lost records, set failOnDataLoss to false)")


class NotRead(BarnabasError):
    """A range could not be read to its end, without evidence that its records are lost."""

    def __init__(self, wanted: OffsetRange, at: int, timeout_ms: float, why: ClientError) -> None:
        where = f"cannot read {wanted.tp} from offset {at} in the range {wanted.start} to {wanted.end}"
        waited = f"; kafkaConsumer.pollTimeoutMs is {timeout_ms:.0f}" if is_retriable(why) else ""
        super().__init__(f"{where}: {why}{waited}")


def read_range(
    wanted: OffsetRange,
    settings: Mapping[str, str],
    columns: tuple[str, ...],
    *,
    fails_on_loss: bool,
    timeout_ms: float,
    topic_id: Uuid | None = None,
    fetches: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield all rows of the range in order.

    With a topic_id, another topic of the same name is not read. Without `fetches` their number is chosen by
    the broker's latency. Raises DataLoss if records or the topic no longer exist, and NotRead if nothing
    arrives for timeout_ms or after any other client error.
    """
    found = arrow_schema(columns)
    reading = {**_FOR_RANGES, **settings, **_DECIDED_HERE}
    start = wanted.start
    has_met = False
    while start < wanted.end:
        try:
            left = wanted._replace(start=start)
            for table in tables_of(left, topic_id, reading, timeout_ms=timeout_ms, fetches=fetches):
                for batch in table.to_batches():
                    yield from rows_of(wanted.tp, batch, columns, found)
                start = table["offset"][-1].as_py() + 1
            return
        except NoOffset as gone:
            if fails_on_loss:
                raise DataLoss(f"{gone}; the range was {wanted.start} to {wanted.end}") from gone
            logger.warning(
                "offsets lost tp=%s from=%d to=%d begins=%d ends=%d",
                wanted.tp,
                start,
                wanted.end,
                gone.start,
                gone.end,
            )
            if gone.start <= start:
                return
            start = gone.start
        except (UnknownTopic, TopicRecreated) as gone:
            if isinstance(gone, TopicRecreated) and start == wanted.start and not has_met:
                # Cached consumers may have metadata of the previous topic; retry once with new ones.
                discard_consumers(reading)
                has_met = True
                continue
            # The topic was deleted after the range was planned.
            if fails_on_loss:
                where = f"in the range {wanted.start} to {wanted.end}"
                raise DataLoss(f"{wanted.tp} is gone from offset {start} {where}: {gone}") from gone
            is_recreated = isinstance(gone, TopicRecreated) and topic_id is None
            try:
                if not is_recreated and _is_there(wanted.tp, topic_id, settings, timeout_ms):
                    # Without its id the topic may be the same or a recreated one: do not guess.
                    raise NotRead(wanted, start, timeout_ms, gone) from gone
            except ClientError as error:
                raise NotRead(wanted, start, timeout_ms, error) from error
            logger.warning("offsets lost tp=%s from=%d to=%d error=%s", wanted.tp, start, wanted.end, gone)
            return
        except ClientError as error:
            raise NotRead(wanted, start, timeout_ms, error) from error


def _is_there(
    tp: TopicPartition, topic_id: Uuid | None, settings: Mapping[str, str], timeout_ms: float
) -> bool:
    """Whether the topic exists. Retries for a while: a broker that just started may have stale metadata."""
    limit_ms = min(timeout_ms, _BEHIND_MS_MAX)
    until_s = time.monotonic() + limit_ms / 1000
    asking = in_time({**settings, **_DECIDED_HERE}, round(limit_ms))
    while True:
        try:
            with cached_consumer(asking) as consumer:
                consumer.assign([tp], topic_ids={} if topic_id is None else {tp.topic: topic_id})
            return True
        except UnknownTopic:
            return False
        except TopicRecreated:
            if time.monotonic() > until_s:
                return False
        # The next consumer may use another broker.
        time.sleep(_LOOK_AGAIN_S)
