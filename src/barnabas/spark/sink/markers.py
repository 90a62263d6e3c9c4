"""Marks: the number of the last written micro-batch, as a group offset committed in its own transaction.

The mark and the rows are therefore committed atomically. The mark uses the first topic that was written,
because an offset needs an existing topic.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.group_offsets import CommittedOffset
from barnabas.client.blocking.admin import Admin
from barnabas.client.group.offsets import OffsetAndMetadata

_NONE: Final = -1


class Mark(NamedTuple):
    """A mark. `note` identifies its writer: a run, a query and its run, or a claim."""

    batch: int
    note: str
    topic: str


NO_MARK: Final = Mark(_NONE, "", "")


def last_mark(admin: Admin, group: str, note: str | None = None) -> Mark:
    """Return the last mark after waiting for pending transactions. With `note`, only marks that have it."""
    return _last(admin.list_group_offsets(group, require_stable=True), note)


def last_marks(admin: Admin, groups: Iterable[str], *, is_stable: bool = True) -> dict[str, Mark]:
    """Return the last marks of several groups; is_stable=False does not wait for pending transactions."""
    committed = admin.list_group_offsets_of(groups, require_stable=is_stable)
    return {group: _last(offsets, None) for group, offsets in committed.items()}


def notes_of(admin: Admin, groups: Iterable[str]) -> set[str]:
    """Return the notes of all marks of these groups, without waiting for pending transactions."""
    committed = admin.list_group_offsets_of(groups)
    return {one.metadata for offsets in committed.values() for one in offsets.values() if one is not None}


def _last(committed: Mapping[TopicPartition, CommittedOffset | None], note: str | None) -> Mark:
    marks = [Mark(one.offset, one.metadata, tp.topic) for tp, one in committed.items() if one is not None]
    return max((one for one in marks if note is None or one.note == note), default=NO_MARK)


def mark_in_transaction(mark: Mark) -> dict[tuple[str, int], OffsetAndMetadata]:
    """Return the mark as an argument of send_offsets_to_transaction()."""
    return {(mark.topic, 0): OffsetAndMetadata(mark.batch, metadata=mark.note)}


def set_mark(admin: Admin, group: str, mark: Mark) -> None:
    """Commit the mark outside a transaction."""
    at = TopicPartition(mark.topic, 0)
    admin.alter_group_offsets(group, {at: CommittedOffset(offset=mark.batch, metadata=mark.note)})
