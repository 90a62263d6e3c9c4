"""The rows of the tables of `barnabas consumer-groups`. Pure."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value

if TYPE_CHECKING:
    from barnabas.client.admin.group_offsets import CommittedOffset
    from barnabas.client.admin.groups import GroupDescription

# Printed for a missing value.
MISSING: Final = "-"
_NO_TIMESTAMP: Final = -1


@value(kw_only=True)
class PartitionRow:
    """The progress of a group in one partition. consumer_id, host and client_id are `-` without a member."""

    tp: TopicPartition
    offset: int | None
    leader_epoch: int | None
    metadata: str | None
    log_end: int | None
    consumer_id: str
    host: str
    client_id: str
    # Age of the first unread record. None: not requested, or unknown.
    lag_seconds: float | None = None

    @property
    def lag(self) -> int | None:
        if self.offset is None or self.log_end is None:
            return None
        return self.log_end - self.offset

    @property
    def lags(self) -> bool:
        return self.lag is not None and self.lag > 0


@value(kw_only=True)
class GroupRows:
    """A group and its progress, in the order of rows_of()."""

    group: "GroupDescription"
    partitions: tuple[PartitionRow, ...]


def rows_of(
    group: "GroupDescription",
    committed: "Mapping[TopicPartition, CommittedOffset | None]",
    ends: Mapping[TopicPartition, int | None],
) -> list[PartitionRow]:
    """Return the rows of assigned partitions, members with most partitions first, then unassigned ones."""
    rows: list[PartitionRow] = []
    assigned: set[TopicPartition] = set()
    # The sort is stable: members with equally many partitions keep the coordinator's order.
    for member in sorted(group.members, key=lambda each: -len(each.assignment)):
        assigned.update(member.assignment)
        owner = (member.id, member.host, member.client_id)
        rows += [_row(tp, committed.get(tp), ends[tp], owner) for tp in member.assignment]
    rest = sorted(tp for tp in committed if tp not in assigned)
    return rows + [_row(tp, committed[tp], ends[tp], (MISSING,) * 3) for tp in rest]


def _row(
    tp: TopicPartition, committed: "CommittedOffset | None", end: int | None, owner: tuple[str, str, str]
) -> PartitionRow:
    return PartitionRow(
        tp=tp,
        offset=None if committed is None else committed.offset,
        leader_epoch=None if committed is None else committed.leader_epoch,
        metadata=None if committed is None else committed.metadata,
        log_end=end,
        consumer_id=owner[0],
        host=owner[1],
        client_id=owner[2],
    )


def age_s(row: PartitionRow, times: Mapping[TopicPartition, int | None], now_ms: int) -> float | None:
    """Return the age of the first unread record; `times` holds the timestamps of these records."""
    if row.lag is None:
        return None
    if not row.lags:
        return 0.0
    if row.tp not in times:
        return None
    time = times[row.tp]
    if time is None:
        # Only transaction markers follow, or the records were deleted: there is no unread record.
        return 0.0
    return None if time == _NO_TIMESTAMP else max(0, now_ms - time) / 1000
