"""What a member's news do to its group, step by step: the same for members of either protocol.

A member that subscribes to something else moves the group to a new epoch. So do topics that change. A new
epoch gets a new target assignment, and then the member takes its next step towards its target. Each step adds
its records; nothing of the group changes before they are applied.
"""

from collections.abc import Sequence
from typing import Final

from barnabas.coordinators.decision.outcome import Now, Record
from barnabas.coordinators.decision.timers import TimerKey
from barnabas.coordinators.group.consumer import records
from barnabas.coordinators.group.consumer.assigning import Assigning
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import ConsumerMember, MemberState
from barnabas.coordinators.group.consumer.reconcile import (
    Owned,
    SubscribedTopics,
    Surroundings,
    Target,
    reconciled,
)
from barnabas.coordinators.group.consumer.regexes import due_for_refresh
from barnabas.coordinators.group.consumer.subscriptions import ResolvedRegex
from barnabas.coordinators.group.consumer.target import Change, changed_targets
from barnabas.coordinators.group.consumer.topics import Topics
from barnabas.coordinators.group.errors import GroupError
from barnabas.coordinators.group.ground import Ground
from barnabas.protocol.error_codes import ErrorCode

SESSION: Final = "session"
REBALANCE: Final = "rebalance"
# Up to so many records, and so many characters and partitions in them, fit into a batch of 200 kB.
_FEW: Final = 256
_SMALL: Final = 10_000
# Of members that speak the classic protocol.
JOIN: Final = "classic-member-join"
SYNC: Final = "classic-member-sync"


class Steps:
    """The steps of one request, to be taken in their order.

    `before` is the member as the group has it, or as it is before it has told anything. Of a static member
    that comes back with a new id, `before` has that id already.
    """

    def __init__(
        self,
        ground: Ground,
        topics: Topics,
        assigning: Assigning,
        group: ConsumerGroup,
        before: ConsumerMember,
        after: ConsumerMember,
    ) -> None:
        self._ground = ground
        self._topics = topics
        self._assigning = assigning
        self._group = group
        self._before = before
        self.member = after
        self.records: list[Record] = []
        self.epoch = group.epoch
        # Whether the member subscribes to something else than before.
        self.changed = False
        # What the group subscribes to after this, and the names that it may have gained or lost.
        self._subscriptions = group.subscriptions
        self._touched: set[str] = set()
        self._moves_on = False
        self._has_resolved = False

    def subscribe(self, now: Now) -> None:
        """What the member tells of itself, and what regular expressions stand for."""
        before, after, group = self._before, self.member, self._group
        if after is not before:
            self.records.append(records.member_record(group.id, after))
            self.changed = after.topics != before.topics or (after.regex or "") != (before.regex or "")
        if self.changed:
            if after.regex and after.regex not in group.subscriptions.regexes:
                self._ground.patterns.check(after.regex)
            self._moves_on = True
            self._subscriptions = group.subscriptions.copy()
            self._touched |= self._subscriptions.replace(before, after)
        if before.regex and before.regex not in self._subscriptions.regexes:
            self._touched |= self._subscriptions.resolve(before.regex, None)
            self.records.append(records.regex_tombstone(group.id, before.regex))
        if self._subscriptions.regexes:
            self._resolve_regexes(now)

    def _resolve_regexes(self, now: Now) -> None:
        """The member's own, if it has not been resolved yet, and some of the group that are out of date."""
        subscriptions, ground = self._subscriptions, self._ground
        regexes = list(
            due_for_refresh(
                subscriptions,
                new_since=self._topics.new_since,
                now_ms=now.ms,
                interval_ms=ground.settings.regex_refresh_interval_ms,
            )
        )
        own = self.member.regex
        if own and own not in subscriptions.resolved:
            regexes.append(own)
        for regex in regexes:
            self._resolve_regex(regex, now)

    def _resolve_regex(self, regex: str, now: Now) -> None:
        """Return the topics that the expression matches now, if they are known already."""
        found = self._ground.patterns.topics_of(regex, self._ground.image)
        old = self._subscriptions.resolved.get(regex)
        if found is None or (old is not None and found.version < self._topics.new_since):
            return
        if self._subscriptions is self._group.subscriptions:
            self._subscriptions = self._subscriptions.copy()
        self._has_resolved = True
        if old is None or found.topics != old.topics:
            self._moves_on = True
        resolved = ResolvedRegex(found.topics, found.version, now.ms)
        self._touched |= self._subscriptions.resolve(regex, resolved)
        self.records.append(
            records.regex_record(self._group.id, regex, found.topics, version=found.version, time_ms=now.ms)
        )

    def count_epoch(self) -> None:
        """A new epoch of the group, if it subscribes to something else or its topics have changed."""
        group = self._group
        if not self._moves_on and group.is_fresh:
            return
        metadata_hash = group.metadata_hash
        if self._touched or not group.is_fresh:
            metadata_hash = self._topics.hash_of(self._subscriptions)
        if self._moves_on or metadata_hash != group.metadata_hash:
            self.epoch += 1
            self.records.append(records.epoch_record(group.id, self.epoch, metadata_hash))
        if group.has_partition_metadata:
            self.records.append(records.partition_metadata_tombstone(group.id))

    def target(self, now: Now) -> Target:
        """What the member should have: computed anew if the epoch is new and the last time is long ago."""
        group, settings = self._group, self._ground.settings
        interval_ms = settings.times_of(group.id).assignment_interval_ms
        # A time that is yet to come is from before the clock was set back.
        is_early = 0 <= now.ms - group.assignment_ms < interval_ms
        if group.assignment_epoch >= self.epoch or is_early:
            return Target(group.assignment_epoch, group.target_of(self.member))
        change = Change(self._before, self.member, self._subscriptions)
        if self._assigning.wants(group, change):
            # It goes on with what it has, until a heartbeat after that.
            return Target(group.assignment_epoch, group.target_of(self.member))
        changed = changed_targets(group, change, self._ground.image, settings.assignors)
        for member_id, target in changed.items():
            self.records.append(records.target_record(group.id, member_id, target))
        self.records.append(records.target_epoch_record(group.id, self.epoch, now.ms))
        own = changed.get(self.member.id)
        return Target(self.epoch, group.targets[self.member.id] if own is None else own)

    def check_size(self, more: Sequence[Record], target: Target) -> None:
        """GroupError if the records, with these before them, are more than the log takes at once.

        Most are few and small: they are not looked at.
        """
        held = sum(map(len, target.partitions.values()))
        told = _told_size(self.member) if self.member is not self._before else 0
        bytes_max = self._ground.batch_bytes_max()
        is_small = len(more) + len(self.records) <= _FEW and held + told <= _SMALL <= bytes_max // 20
        if is_small and not self._has_resolved:
            return
        # One is still to come: what the member has from now on. A partition takes twice as much there.
        last = records.target_record(self._group.id, self.member.id, dict(target.partitions))
        size = records.size_of((*more, *self.records, last, last))
        if size > bytes_max:
            raise GroupError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Group {self._group.id} would need {size} bytes in the log at once.",
            )

    def reconcile(self, target: Target, owned: Owned, now: Now) -> None:
        """The member's next step towards its target. The last step: from here on nothing can be refused."""
        member, group = self.member, self._group
        if self.changed or not member.is_reconciled_to(target.epoch):
            subscribed = SubscribedTopics(self._subscriptions.topics_of(member), self._ground.image)
            around = Surroundings(owned, subscribed, self.changed, group.ownership.holder)
            self.member = reconciled(member, target, around)
            if self.member.epoch != member.epoch or self.member != member:
                self.records.append(records.current_record(group.id, self.member))
                self._time_revocation(now)
        group.is_fresh = True

    def _time_revocation(self, now: Now) -> None:
        """Whoever is told to give up partitions has as long for it as it said a rebalance may take."""
        member = self.member
        key: TimerKey = (REBALANCE, self._group.id, member.id)
        if member.state is not MemberState.UNREVOKED:
            self._ground.timers.cancel(key)
        elif member.classic is None:
            self._ground.timers.set(key, now.tick_ms + member.rebalance_timeout_ms)


def _told_size(member: ConsumerMember) -> int:
    """Roughly, of what a member has told of itself and may be long."""
    protocols = () if member.classic is None else member.classic.protocols
    return sum(map(len, member.topics)) + sum(len(metadata) for _, metadata in protocols)
