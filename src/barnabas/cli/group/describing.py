"""The requests of --describe, and the order in which groups are printed."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from barnabas.base.ids import TopicPartition
from barnabas.cli.group.failures import CommandFailed, Wrapped, failing
from barnabas.cli.group.rows import GroupRows, age_s, rows_of
from barnabas.cli.tool import note, reason

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin
    from barnabas.client.admin.groups import GroupDescription, GroupListing, GroupState, GroupType

_CONSUMERS: Final = ("", "consumer")
_NO_LEADER: Final = -1


async def consumer_groups(
    admin: "Admin",
    *,
    states: "Collection[GroupState]" = (),
    types: "Collection[GroupType]" = (),
    timeout_ms: float,
) -> "list[GroupListing]":
    """Return all consumer groups, sorted by name."""
    with failing(Wrapped.NESTED):
        found = await admin.list_groups(states=states, types=types, timeout_ms=timeout_ms)
    return [each for each in found.values() if each.protocol_type in _CONSUMERS]


async def described(admin: "Admin", groups: Iterable[str], *, timeout_ms: float) -> "list[GroupDescription]":
    """Describe the groups, sorted by name. One failure fails all of them, as in Kafka's tool."""
    with failing(Wrapped.CAUSE):
        found = await admin.describe_groups(sorted(set(groups)), timeout_ms=timeout_ms)
    for group in found.values():
        check_is_of_consumers(group)
    return list(found.values())


def check_is_of_consumers(group: "GroupDescription") -> None:
    if not group.is_of_consumers:
        raise CommandFailed(
            f"java.lang.IllegalArgumentException: GroupId {group.group} is not a consumer group"
            f" ({group.protocol_type})."
        )


async def with_offsets(
    admin: "Admin", groups: "list[GroupDescription]", *, timeout_ms: float
) -> list[GroupRows]:
    with failing(Wrapped.NESTED):
        committed = await admin.list_group_offsets_of([each.group for each in groups], timeout_ms=timeout_ms)
        wanted = {tp for offsets in committed.values() for tp in offsets}
        wanted.update(tp for each in groups for member in each.members for tp in member.assignment)
        ends = await _log_ends(admin, wanted, timeout_ms)
    return [
        GroupRows(group=each, partitions=tuple(rows_of(each, committed[each.group], ends))) for each in groups
    ]


async def _log_ends(
    admin: "Admin", tps: Collection[TopicPartition], timeout_ms: float
) -> dict[TopicPartition, int | None]:
    """Return log end offsets; None for a partition without a leader."""
    from barnabas.client.admin.records import OffsetSpec

    if not tps:
        return {}
    topics = await admin.describe_topics({tp.topic for tp in tps}, timeout_ms=timeout_ms)
    led = {
        TopicPartition(topic.name, each.partition)
        for topic in topics.values()
        for each in topic.partitions
        if each.leader != _NO_LEADER
    }
    wanted = dict.fromkeys((tp for tp in tps if tp in led), int(OffsetSpec.LATEST))
    listed = await admin.list_offsets(wanted, timeout_ms=timeout_ms) if wanted else {}
    return {tp: listed[tp].offset if tp in listed else None for tp in tps}


# Age of unread records


async def with_ages(
    admin: "Admin", groups: list[GroupRows], *, now_ms: int, timeout_ms: float
) -> list[GroupRows]:
    """Add the age of the first unread record to the row of each partition."""
    found = []
    for each in groups:
        behind = {row.tp: row.offset for row in each.partitions if row.offset is not None and row.lags}
        times = await _times(admin, behind, timeout_ms) if behind else {}
        rows = tuple(replace(row, lag_seconds=age_s(row, times, now_ms)) for row in each.partitions)
        found.append(replace(each, partitions=rows))
    return found


async def _times(
    admin: "Admin", behind: Mapping[TopicPartition, int], timeout_ms: float
) -> Mapping[TopicPartition, int | None]:
    """Return timestamps of the first unread records. Errors go to stderr and do not fail the table."""
    from barnabas.client.admin.call import PartlyRefused

    try:
        return await admin.first_record_times(behind, timeout_ms=timeout_ms)
    except PartlyRefused as error:
        for name, refused in error.refused.items():
            note(f"cannot read the first unread record of {name}: {reason(refused)}")
        return error.done
