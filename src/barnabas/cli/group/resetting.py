"""Reset offsets of groups: first plan partitions and offsets of all groups, then commit.

Kafka's tool plans and commits group by group, so a failure leaves the earlier groups changed. This tool plans
all groups before it commits any.
"""

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.base.ids import TopicPartition
from barnabas.cli.group import describing, reset_file, times
from barnabas.cli.group.failures import CommandFailed, Misused, Wrapped, failing
from barnabas.cli.group.partitions import every_partition, parse_topics
from barnabas.cli.option_parser import Options
from barnabas.cli.tool import note

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

Offsets = dict[TopicPartition, int]

_NO_LEADER: Final = -1
_RESETTABLE: Final = ("Empty", "Dead")


class Resetting:
    """One run of --reset-offsets. `errors` holds the errors of groups by name."""

    def __init__(self, admin: "Admin", options: Options) -> None:
        self.errors: dict[str, str] = {}
        self.warnings: list[str] = []
        self._admin = admin
        self._options = options
        self._timeout_ms = options.timeout

    async def plan(self, groups: Iterable[str]) -> dict[str, Offsets]:
        """Return the new offsets of each group; empty if the group cannot be reset."""
        names = sorted(set(groups))
        states = await self._states(names)
        plan: dict[str, Offsets] = {}
        for group in names:
            if states[group] in _RESETTABLE:
                plan[group] = dict(sorted((await self._plan_group(group)).items()))
            else:
                self.errors[group] = (
                    f"Assignments can only be reset if the group '{group}' is inactive, but the current state"
                    f" is {states[group]}."
                )
                plan[group] = {}
        return plan

    async def execute(self, plan: Mapping[str, Offsets]) -> None:
        from barnabas.client.errors import SomeRefused

        for group, offsets in plan.items():
            if not offsets:
                continue
            try:
                with failing(Wrapped.BARE):
                    await self._admin.alter_group_offsets(group, offsets, timeout_ms=self._timeout_ms)
            except CommandFailed as error:
                if isinstance(error.__cause__, SomeRefused):
                    names = [name for name in map(str, offsets) if name in error.__cause__.refused]
                    raise CommandFailed(
                        f"Failed altering group offsets for the following partitions: [{', '.join(names)}]"
                    ) from error
                raise

    async def _states(self, groups: list[str]) -> dict[str, str]:
        """Return the states of groups; `Dead` for an unknown group, which the reset creates."""
        from barnabas.client.admin.call import PartlyRefused
        from barnabas.protocol.error_codes import ErrorCode

        try:
            found = await self._admin.describe_groups(groups, timeout_ms=self._timeout_ms)
        except PartlyRefused as error:
            for refused in error.refused.values():
                if refused.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                    with failing(Wrapped.NESTED):
                        raise refused from error
            found = error.done
        for group in found.values():
            describing.check_is_of_consumers(group)
        return {group: found[group].state if group in found else "Dead" for group in groups}

    async def _plan_group(self, group: str) -> Offsets:
        tps = await self._scope(group)
        await self._check(tps)
        options = self._options
        if options.to_offset is not None:
            return await self._within(dict.fromkeys(tps, options.to_offset))
        if options.to_earliest:
            return await self._listed(tps, -2)
        if options.to_latest:
            return await self._listed(tps, -1)
        if options.shift_by is not None:
            return await self._within(await self._shifted(group, tps, options.shift_by))
        if options.to_datetime is not None:
            return await self._at_time(tps, times.parse_datetime(options.to_datetime))
        if options.by_duration is not None:
            now_ms = time.time_ns() // 10**6
            return await self._at_time(tps, now_ms - times.parse_duration(options.by_duration))
        if options.from_file is not None:
            return await self._from_file(group, options.from_file)
        return await self._current(group, tps)

    # Partitions

    async def _scope(self, group: str) -> list[TopicPartition]:
        if self._options.all_topics:
            return sorted(await self._committed(group))
        named, topics = parse_topics(self._options.topic)
        with failing(Wrapped.BARE):
            found = await every_partition(self._admin, topics, timeout_ms=self._timeout_ms)
        return list(dict.fromkeys([*named, *found]))

    async def _check(self, tps: Iterable[TopicPartition]) -> None:
        """Raise CommandFailed unless all partitions exist and have a leader."""
        with failing(Wrapped.NESTED):
            known = await self._admin.describe_topics({tp.topic for tp in tps}, timeout_ms=self._timeout_ms)
        leaders = {
            TopicPartition(topic.name, each.partition): each.leader
            for topic in known.values()
            for each in topic.partitions
        }
        missing = [str(tp) for tp in tps if tp not in leaders]
        if missing:
            raise CommandFailed(f'The partitions "{",".join(missing)}" do not exist')
        leaderless = [str(tp) for tp in tps if leaders[tp] == _NO_LEADER]
        if leaderless:
            raise CommandFailed(f'The partitions "{",".join(leaderless)}" have no leader')

    # Offsets

    async def _committed(self, group: str) -> Offsets:
        with failing(Wrapped.NESTED):
            found = await self._admin.list_group_offsets(group, timeout_ms=self._timeout_ms)
        return {tp: each.offset for tp, each in found.items() if each is not None}

    async def _listed(self, tps: Iterable[TopicPartition], spec: int) -> Offsets:
        wanted = dict.fromkeys(tps, spec)
        with failing(Wrapped.NESTED):
            found = await self._admin.list_offsets(wanted, timeout_ms=self._timeout_ms) if wanted else {}
        return {tp: each.offset for tp, each in found.items() if each.offset is not None}

    async def _within(self, wanted: Offsets) -> Offsets:
        """Limit the offsets to the range of each log."""
        starts, ends = await self._listed(wanted, -2), await self._listed(wanted, -1)
        found: Offsets = {}
        for tp, offset in wanted.items():
            found[tp] = max(starts[tp], min(offset, ends[tp]))
            if found[tp] != offset:
                word = "higher than latest" if offset > ends[tp] else "lower than earliest"
                note(
                    f"New offset ({offset}) is {word} offset for topic partition {tp}."
                    f" Value will be set to {found[tp]}"
                )
        return found

    async def _shifted(self, group: str, tps: Iterable[TopicPartition], by: int) -> Offsets:
        committed = await self._committed(group)
        for tp in tps:
            if tp not in committed:
                raise Misused(
                    f"Cannot shift offset for partition {tp} since there is no current committed offset"
                )
        return {tp: committed[tp] + by for tp in tps}

    async def _at_time(self, tps: list[TopicPartition], timestamp_ms: int) -> Offsets:
        """Return the offset of the first record at or after the time; without one, the log end."""
        # Negative timestamps have special meanings in ListOffsets.
        found = await self._listed(tps, max(0, timestamp_ms))
        late = [tp for tp in tps if tp not in found]
        for tp in late:
            self.warnings.append(
                f"Partition {tp.partition} from topic {tp.topic} is empty. Falling back to latest known"
                " offset."
            )
        found |= await self._listed(late, -1)
        return {tp: found[tp] for tp in tps}

    async def _from_file(self, group: str, path: str) -> Offsets:
        plan = reset_file.read_plan(path, self._options.group)
        if group not in plan:
            self.errors[group] = f"No reset plan for group {group} found"
            return {}
        return await self._within(plan[group])

    async def _current(self, group: str, tps: list[TopicPartition]) -> Offsets:
        """Return the committed offsets; without one, the log end."""
        committed = await self._committed(group)
        ends = await self._listed([tp for tp in tps if tp not in committed], -1)
        return {tp: committed[tp] if tp in committed else ends[tp] for tp in tps}
