"""What the tables of `barnabas consumer-groups` are made of. Pure."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value

if TYPE_CHECKING:
    from barnabas.client.admin.group_descriptions import GroupDescription
    from barnabas.client.admin.group_offsets import CommittedOffset

# In the place of what there is not.
MISSING: Final = "-"
_NO_TIMESTAMP: Final = -1


@value(kw_only=True)
class PartitionRow:
    """How far a group is in one partition. The last three texts are `-` without a member."""

    tp: TopicPartition
    offset: int | None
    leader_epoch: int | None
    metadata: str | None
    log_end: int | None
    consumer_id: str
    host: str
    client_id: str
    # How old the first record is that the group has not read. None: not asked for, or not known.
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
    """A group and where it is: what its members have first, those with the most partitions before others."""

    group: "GroupDescription"
    partitions: tuple[PartitionRow, ...]


def rows_of(
    group: "GroupDescription",
    committed: "Mapping[TopicPartition, CommittedOffset | None]",
    ends: Mapping[TopicPartition, int | None],
) -> list[PartitionRow]:
    """What members have, those with the most partitions first, and then what nobody has."""
    rows: list[PartitionRow] = []
    assigned: set[TopicPartition] = set()
    # The order among those with as many is the coordinator's.
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
    """How old the first record is that was not read; `times` are those of the first records that follow."""
    if row.lag is None:
        return None
    if not row.lags:
        return 0.0
    if row.tp not in times:
        return None
    time = times[row.tp]
    if time is None:
        # Only markers of transactions follow, or what there was is gone: there is no record to wait for.
        return 0.0
    return None if time == _NO_TIMESTAMP else max(0, now_ms - time) / 1000
