"""Runs of a query with an exactly-once sink, writer by writer and without Spark: its tasks and its driver."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final
from uuid import uuid4

import pyarrow as pa

from barnabas.client.admin.transactions import TransactionState
from barnabas.client.blocking import Admin, Consumer
from barnabas.client.consumer.message import EndOfPartition
from barnabas.spark.options.sink import Scope, SinkOptions, sink_options
from barnabas.spark.options.values import Values
from barnabas.spark.sink.ids import batch_id, slot_id
from barnabas.spark.sink.slots import SlotWritten, abort_slots, begin_commit, commit_slots, write_slot
from barnabas.spark.sink.whole_batch import PartWritten, abort_parts, commit_parts, open_batch, write_part

ROWS: Final = 60
PARTITIONS: Final = 3
_WAIT_MAX_S: Final = 10
# The rows that readers see once micro-batch 0 is committed.
ALL: Final = list(range(ROWS))
_numbers = count()


class Query:
    """A query that copies the numbers from 0 on, and a topic of its own for them."""

    def __init__(self, address: str, *, checkpoint: str | None = None, prefix: str = "sink") -> None:
        self.id = str(uuid4())
        self.address = address
        self.topic = f"out-{next(_numbers)}"
        self.checkpoint = checkpoint or f"/checkpoints/{self.id}"
        self.prefix = prefix
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topic(self.topic, partitions=PARTITIONS)

    def run(self, tasks: int, *, prefix: str | None = None, scope: Scope = Scope.TASK) -> "Run":
        return Run(self, tasks, prefix or self.prefix, scope)

    def seen(self) -> list[int]:
        """What readers of committed records see now."""
        found: list[int] = []
        settings = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
        with Consumer(bootstrap_servers=self.address, enable_partition_eof=True, **settings) as consumer:
            left = set(consumer.assign_topic(self.topic))
            while left:
                messages = consumer.batch(1000, timeout_ms=_WAIT_MAX_S * 1000)
                assert messages, f"the ends of {left} are not reached"
                for message in messages:
                    if isinstance(message, EndOfPartition):
                        left.discard(message.tp)
                    else:
                        found.append(int(message.value or b""))
        return sorted(found)

    def open_ids(self) -> list[str]:
        """Transactional ids that have a transaction open."""
        with Admin(bootstrap_servers=self.address) as admin:
            listed = admin.list_transactions(states=[TransactionState.ONGOING])
        return sorted(name for name in listed if self.id in name or self.checkpoint_name in name)

    @property
    def checkpoint_name(self) -> str:
        return str(self.run(1).options.checkpoint)


class Run:
    """One start of the query, with so many tasks: row n comes to task n modulo their number."""

    def __init__(self, query: Query, tasks: int, prefix: str, scope: Scope) -> None:
        self.query, self.tasks = query, tasks
        self.id = str(uuid4())
        given = {
            "kafka.bootstrap.servers": query.address,
            "topic": query.topic,
            "deliveryGuarantee": "exactly-once",
            "transactionScope": scope.value,
            "transactionalIdPrefix": prefix,
            "checkpointLocation": query.checkpoint,
        }
        self.options: SinkOptions = sink_options(Values(given), overwrite=False, directory="/")
        # By a run of scope batch, whose tasks write to a partition each.
        assert scope is Scope.TASK or tasks <= PARTITIONS

    def slot(self, number: int) -> str:
        return slot_id(self.options.id_prefix, self.query.id, number)

    def write(self, batch: int = 0, *, without: Sequence[int] = ()) -> list[SlotWritten]:
        """Every task has done its part, and the driver has not begun."""
        return [
            self.write_slot(number, batch, has_rows=number not in without) for number in range(self.tasks)
        ]

    def write_slot(self, number: int, batch: int = 0, *, has_rows: bool = True) -> SlotWritten:
        rows = self._rows(number, batch) if has_rows else iter(())
        return write_slot(self.options, rows, self.query.id, batch, number, self.id)

    def _rows(self, task: int, batch: int) -> Iterator[pa.RecordBatch]:
        numbers = [number for number in range(ROWS) if number % self.tasks == task]
        yield pa.record_batch(
            {
                "value": [str(ROWS * batch + number) for number in numbers],
                "partition": pa.array([task % PARTITIONS] * len(numbers), pa.int32()),
            }
        )

    def commit(self, slots: Sequence[SlotWritten], batch: int = 0) -> None:
        """As Spark does: what can not be committed is aborted."""
        try:
            commit_slots(self.options, slots, batch)
        except Exception:
            abort_slots(self.options, slots)
            raise

    def commit_some(self, slots: Sequence[SlotWritten], numbers: Sequence[int], batch: int = 0) -> None:
        """The driver dies when it has committed these."""
        with Admin(bootstrap_servers=self.query.address) as admin:
            begin_commit(admin, self.options, slots, batch)
            opened = [one.opened for one in slots if one.slot in numbers and one.opened is not None]
            admin.end_transactions(opened, commit=True)

    def write_whole(self, batch: int = 0) -> list[PartWritten]:
        assert self.options.checkpoint is not None
        opened = open_batch(self.options, batch_id(self.options.id_prefix, self.options.checkpoint))
        return [
            write_part(self.options, self._rows(task, batch), opened, self.query.id, batch, task, self.id)
            for task in range(self.tasks)
        ]

    def commit_whole(self, parts: list[PartWritten], batch: int = 0) -> None:
        try:
            commit_parts(self.options, parts, batch)
        except Exception:
            abort_parts(self.options, parts)
            raise
