"""The record of a query: which micro-batch a driver began to commit last, with how many tasks, in which runs.

It is an offset of a group, without a transaction, written before anything of the micro-batch is committed.
A restart needs it twice. The last run tells a driver whether this commit is the first of its own run. And a
micro-batch that is replayed after some slots were committed must have as many tasks as before: the marks of
slots name the run that wrote them, the record says how many tasks these runs had.
"""

from typing import Final, NamedTuple

from barnabas.client.blocking.admin import Admin
from barnabas.spark.sink.ids import record_group
from barnabas.spark.sink.markers import NO_MARK, Mark, last_mark, set_mark

# Runs that committed parts of one micro-batch: as many drivers died while they committed it. 37 bytes each,
# and brokers take 4,096 bytes of metadata with an offset (offset.metadata.max.bytes).
RUNS_MAX: Final = 64
# Of releases that recorded no runs.
UNKNOWN_RUN: Final = ""


class Record(NamedTuple):
    """`runs` are those that planned the micro-batch with this number of tasks, in their order."""

    batch: int
    tasks: int
    runs: tuple[str, ...]
    # Where it is kept: empty if there is none.
    topic: str = ""

    @property
    def last_run(self) -> str:
        return self.runs[-1] if self.runs else UNKNOWN_RUN

    def explains(self, mark: Mark, batch: int, tasks: int) -> bool:
        """Whether this slot was committed by a run that had planned the micro-batch with so many tasks."""
        if self.tasks != tasks or self.batch < batch:
            return False
        # The record of a later micro-batch: an older checkpoint was put back, and all of it is written.
        return mark.batch < self.batch or mark.note in self.runs


NO_RECORD: Final = Record(-1, 0, ())


def read_record(admin: Admin, prefix: str, query: str) -> Record:
    mark = last_mark(admin, record_group(prefix, query))
    if mark == NO_MARK:
        return NO_RECORD
    tasks, *runs = mark.note.split(" ")
    return Record(mark.batch, int(tasks), tuple(runs) or (UNKNOWN_RUN,), mark.topic)


def write_record(admin: Admin, prefix: str, query: str, record: Record) -> None:
    note = " ".join([str(record.tasks), *record.runs[-RUNS_MAX:]])
    set_mark(admin, record_group(prefix, query), Mark(record.batch, note.rstrip(" "), record.topic))
