"""The record of runs: the last micro-batch that a driver began to commit, its number of tasks, and its runs.

The record is a group offset with metadata, written without a transaction before anything of the micro-batch
is committed. It serves two purposes after a restart. Its last run shows a driver whether a commit is the
first of its own run. And it holds the number of tasks of the runs that the marks of slots name: a micro-batch
that is replayed after some slots were committed must have the same number.
"""

from typing import Final, NamedTuple

from barnabas.client.blocking.admin import Admin
from barnabas.spark.sink.ids import record_group
from barnabas.spark.sink.markers import NO_MARK, Mark, last_mark, set_mark

# Limit of runs that committed parts of one micro-batch, which is the number of drivers that died doing so.
# Each takes 37 bytes, and brokers accept 4,096 bytes of offset metadata (offset.metadata.max.bytes).
RUNS_MAX: Final = 64
# The run in records and marks of releases that did not store it.
UNKNOWN_RUN: Final = ""


class Record(NamedTuple):
    """The record. `runs` are those that planned the micro-batch with this number of tasks, oldest first."""

    batch: int
    tasks: int
    runs: tuple[str, ...]
    # Topic of the offset that holds the record; empty if there is no record.
    topic: str = ""

    @property
    def last_run(self) -> str:
        return self.runs[-1] if self.runs else UNKNOWN_RUN

    def explains(self, mark: Mark, batch: int, tasks: int) -> bool:
        """Whether the slot was committed by a run that planned the micro-batch with this number of tasks."""
        if self.tasks != tasks or self.batch < batch:
            return False
        # The record is of a later micro-batch: an old checkpoint was restored, and this one is all committed.
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
