"""Mixin of Admin with the calls about groups.

Loading or moved coordinators are retried. Result types are declared in groups.py, group_descriptions.py and
group_offsets.py, which the calls import late: most tools do not use groups.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.call import K, Outcome, V, all_of, only
from barnabas.client.admin.lifetime import AdminLifetime
from barnabas.client.errors import Refused

if TYPE_CHECKING:
    from barnabas.client.admin.group_descriptions import GroupDescription
    from barnabas.client.admin.group_offsets import CommittedOffset
    from barnabas.client.admin.groups import GroupListing, GroupState, GroupType

TopicPartitionLike: TypeAlias = TopicPartition | tuple[str, int]


class GroupCalls(AdminLifetime):
    async def list_groups(
        self,
        *,
        states: "Collection[GroupState]" = (),
        types: "Collection[GroupType]" = (),
        timeout_ms: float | None = None,
    ) -> "dict[str, GroupListing]":
        """List groups, sorted by name, in these states and of these types (default: all)."""
        from barnabas.client.admin import groups

        return await groups.list_all(self._call(timeout_ms), states=states, types=types)

    async def describe_group(
        self, group: str, *, operations: bool = False, timeout_ms: float | None = None
    ) -> "GroupDescription":
        """Describe a group of either protocol. Refused with GROUP_ID_NOT_FOUND if it does not exist."""
        from barnabas.client.admin import group_descriptions

        call = self._call(timeout_ms)
        return only(await group_descriptions.describe(call, [group], operations=operations))

    async def describe_groups(
        self, wanted: Iterable[str], *, operations: bool = False, timeout_ms: float | None = None
    ) -> "dict[str, GroupDescription]":
        from barnabas.client.admin import group_descriptions

        call = self._call(timeout_ms)
        return all_of(await group_descriptions.describe(call, wanted, operations=operations))

    async def delete_group(self, group: str, *, timeout_ms: float | None = None) -> None:
        """Delete a group and its offsets. It must have no members."""
        from barnabas.client.admin import groups

        only(await groups.delete(self._call(timeout_ms), [group]))

    async def delete_groups(self, wanted: Iterable[str], *, timeout_ms: float | None = None) -> None:
        from barnabas.client.admin import groups

        all_of(await groups.delete(self._call(timeout_ms), wanted))

    # Offsets of groups

    async def list_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartitionLike] | None = None,
        *,
        require_stable: bool = False,
        timeout_ms: float | None = None,
    ) -> "dict[TopicPartition, CommittedOffset | None]":
        """Return committed offsets (default: all partitions); None for a partition without one.

        With `require_stable`, wait for open transactions that contain offsets of the group.
        """
        from barnabas.client.admin import group_offsets

        wanted = {group: partitions}
        call = self._call(timeout_ms)
        return only(await group_offsets.fetch(call, _named(wanted), require_stable=require_stable))

    async def list_group_offsets_of(
        self,
        wanted: Iterable[str] | Mapping[str, Iterable[TopicPartitionLike] | None],
        *,
        require_stable: bool = False,
        timeout_ms: float | None = None,
    ) -> "dict[str, dict[TopicPartition, CommittedOffset | None]]":
        """Like list_group_offsets(), for several groups; a mapping gives the partitions of each."""
        from barnabas.client.admin import group_offsets

        chosen = dict(wanted) if isinstance(wanted, Mapping) else dict.fromkeys(wanted)
        call = self._call(timeout_ms)
        return all_of(await group_offsets.fetch(call, _named(chosen), require_stable=require_stable))

    async def alter_group_offsets(
        self,
        group: str,
        offsets: "Mapping[TopicPartition, int | CommittedOffset]",
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Set committed offsets of a group without members. A missing group is created."""
        from barnabas.client.admin import group_offsets
        from barnabas.client.group.offsets import check_offset

        chosen = {
            TopicPartition(*tp): group_offsets.CommittedOffset(offset=each) if isinstance(each, int) else each
            for tp, each in offsets.items()
        }
        for tp, each in chosen.items():
            check_offset(tp, each.offset)
        _all_or_group(group, await group_offsets.commit(self._call(timeout_ms), group, chosen))

    async def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartitionLike], *, timeout_ms: float | None = None
    ) -> None:
        """Delete committed offsets of topics that no member subscribes to. Missing offsets are no error."""
        from barnabas.client.admin import group_offsets

        tps = [TopicPartition(*tp) for tp in partitions]
        _all_or_group(group, await group_offsets.delete(self._call(timeout_ms), group, tps))

    # Members of groups

    async def remove_group_members(
        self,
        group: str,
        *,
        members: Iterable[str] = (),
        instances: Iterable[str] = (),
        reason: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Remove members by member id, static ones by group.instance.id. They may join again."""
        from barnabas.client.admin.group_members import MemberKey, remove

        keys = [MemberKey(each) for each in members]
        keys += [MemberKey(instance_id=each) for each in instances]
        _all_or_group(group, await remove(self._call(timeout_ms), group, keys, reason=reason))


def _named(
    wanted: Mapping[str, Iterable[TopicPartitionLike] | None],
) -> dict[str, list[TopicPartition] | None]:
    return {
        group: None if tps is None else [TopicPartition(*tp) for tp in tps] for group, tps in wanted.items()
    }


def _all_or_group(group: str, outcomes: Mapping[K, Outcome[V]]) -> dict[K, V]:
    """Return all values. Raise an error of the whole group once instead of per item."""
    for outcome in outcomes.values():
        if isinstance(outcome, Refused) and outcome.about == f"group {group}":
            raise outcome
    return all_of(outcomes)
