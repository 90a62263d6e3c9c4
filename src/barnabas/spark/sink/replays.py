"""Rejects a replayed micro-batch if part of it was committed with another plan. Pure.

Rows that one slot has committed could be assigned to another slot, and be written again.
"""

from collections.abc import Mapping
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.spark.sink.markers import Mark
from barnabas.spark.sink.runs import Record

# Limit of ids in an error message.
_IDS_TOLD_MAX: Final = 5


class SlotsChanged(BarnabasError):
    """A partly committed micro-batch is now planned differently."""


def check_same_plan(
    batch: int,
    tasks: int,
    record: Record,
    written: Mapping[str, Mark],
    prefixes: Mapping[str, str],
    prefix: str,
) -> None:
    """Raise SlotsChanged unless `written`, the committed slots, have the prefix and plan of this run."""
    if others := {name: prefixes[name] for name in written if prefixes.get(name, prefix) != prefix}:
        before = min(others.values())
        raise SlotsChanged(
            f"batch {batch} was committed, at least in part, under another transactionalIdPrefix "
            f"({_named(others)}): run the query once with transactionalIdPrefix={before}, "
            "transactionScope=task and the previous number of tasks, then change the prefix"
        )
    if all(record.explains(mark, batch, tasks) for mark in written.values()):
        return
    if record.batch < batch or record.tasks == tasks:
        raise SlotsChanged(
            f"batch {batch} was committed in part ({_named(written)}) by a run whose number of tasks is not "
            "recorded: committed rows would be duplicated"
        )
    raise SlotsChanged(
        f"batch {batch} was begun with {record.tasks} tasks but is now planned with {tasks}, and its "
        f"committed rows ({_named(written)}) would be duplicated: run the query once with "
        f"{record.tasks} tasks (repartition(), spark.sql.shuffle.partitions, and "
        "spark.sql.adaptive.streaming.stateless.enabled=false), then change the number"
    )


def check_not_in_parts(batch: int, written: Mapping[str, Mark]) -> None:
    """Raise SlotsChanged if slots have committed a micro-batch that is now one transaction."""
    if written:
        raise SlotsChanged(
            f"batch {batch} was committed, at least in part, by transactionScope=task ({_named(written)}): "
            "run the query once with that scope, its transactionalIdPrefix and the previous number of tasks, "
            "then change the scope"
        )


def _named(ids: Mapping[str, object]) -> str:
    some = sorted(ids)[:_IDS_TOLD_MAX]
    more = len(ids) - len(some)
    return ", ".join(some) + (f" and {more} more" if more else "")
