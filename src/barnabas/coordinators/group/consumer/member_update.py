"""The effect of a member's changes on its group, for members of both protocols.

A changed subscription or changed topics bump the group epoch. A new epoch gets a new target assignment, and
then the member takes its next reconciliation step. Each step adds records; the group does not change before
they are applied.

Regular expressions have RE2 syntax and are matched against whole topic names, also those of internal topics.
Kafka resolves them in an executor and applies the result later. Here a member gets its partitions in the
heartbeat with which it joins. Results come from patterns.py.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from barnabas.coordinators.decision.outcome import Now, Record
from barnabas.coordinators.decision.timers import TimerKey
from barnabas.coordinators.group.consumer import records
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import ConsumerMember, MemberState
from barnabas.coordinators.group.consumer.reconcile import (
    Owned,
    StepInputs,
    SubscribedTopics,
    Target,
    next_step,
)
from barnabas.coordinators.group.consumer.subscriptions import ResolvedRegex, Subscriptions, TopicIndex
from barnabas.coordinators.group.consumer.target import Change, DeferredAssignments, changed_targets
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.group import GroupError
from barnabas.protocol.error_codes import ErrorCode

# Timers of all members, and of classic members.
SESSION: Final = "session"
REBALANCE: Final = "rebalance"
JOIN: Final = "classic-member-join"
SYNC: Final = "classic-member-sync"
MEMBER_TIMERS: Final = (SESSION, REBALANCE, JOIN, SYNC)
# This many records, with this many characters and partitions in total, fit in a batch of 200 kB.
_FEW: Final = 256
_SMALL: Final = 10_000
# Minimum time between two refreshes of an expression, even if topics are created.
REFRESH_INTERVAL_MS_MIN: Final = 10_000
# Limits of expressions, and of topics in them, refreshed in one heartbeat. Later heartbeats refresh the
# others.
REFRESHED_AT_ONCE: Final = 16
_TOPICS_AT_ONCE: Final = 2_000


class MemberUpdate:
    """The steps of one request, to be called in order.

    `before` is the member in the group, or a new empty one. For a static member that returns with a new id,
    `before` already has the new id.
    """

    def __init__(
        self,
        context: ShardContext,
        topics: TopicIndex,
        assigning: DeferredAssignments,
        group: ConsumerGroup,
        before: ConsumerMember,
        after: ConsumerMember,
    ) -> None:
        self._context = context
        self._topics = topics
        self._assigning = assigning
        self._group = group
        self._before = before
        self.member = after
        self.records: list[Record] = []
        self.epoch = group.epoch
        # Whether the member's subscription has changed.
        self.changed = False
        # The group's subscriptions after this request, and the topics that it may have gained or lost.
        self._subscriptions = group.subscriptions
        self._affected_topics: set[str] = set()
        self._needs_epoch = False
        self._has_resolved = False

    def subscribe(self, now: Now) -> None:
        """Record the member's metadata and resolve regular expressions."""
        before, after, group = self._before, self.member, self._group
        if after is not before:
            self.records.append(records.member_record(group.id, after))
            self.changed = after.topics != before.topics or (after.regex or "") != (before.regex or "")
        if self.changed:
            if after.regex and after.regex not in group.subscriptions.regexes:
                self._context.patterns.check(after.regex)
            self._needs_epoch = True
            self._subscriptions = group.subscriptions.copy()
            self._affected_topics |= self._subscriptions.replace(before, after)
        if before.regex and before.regex not in self._subscriptions.regexes:
            self._affected_topics |= self._subscriptions.resolve(before.regex, None)
            self.records.append(records.regex_tombstone(group.id, before.regex))
        if self._subscriptions.regexes:
            self._resolve_regexes(now)

    def _resolve_regexes(self, now: Now) -> None:
        """Resolve the member's expression if it is new, and refresh some outdated ones of the group."""
        subscriptions, context = self._subscriptions, self._context
        regexes = list(
            _due_for_refresh(
                subscriptions,
                new_since=self._topics.new_since,
                now_ms=now.ms,
                interval_ms=context.settings.regex_refresh_interval_ms,
            )
        )
        own = self.member.regex
        if own and own not in subscriptions.resolved:
            regexes.append(own)
        for regex in regexes:
            self._resolve_regex(regex, now)

    def _resolve_regex(self, regex: str, now: Now) -> None:
        """Record the topics that the expression matches, if the result is available."""
        found = self._context.patterns.topics_of(regex, self._context.image)
        old = self._subscriptions.resolved.get(regex)
        if found is None or (old is not None and found.version < self._topics.new_since):
            return
        if self._subscriptions is self._group.subscriptions:
            self._subscriptions = self._subscriptions.copy()
        self._has_resolved = True
        if old is None or found.topics != old.topics:
            self._needs_epoch = True
        resolved = ResolvedRegex(found.topics, found.version, now.ms)
        self._affected_topics |= self._subscriptions.resolve(regex, resolved)
        self.records.append(
            records.regex_record(self._group.id, regex, found.topics, version=found.version, time_ms=now.ms)
        )

    def bump_epoch(self) -> None:
        """Bump the group epoch if its subscriptions or topics have changed."""
        group = self._group
        if not self._needs_epoch and group.is_fresh:
            return
        metadata_hash = group.metadata_hash
        if self._affected_topics or not group.is_fresh:
            metadata_hash = self._topics.hash_of(self._subscriptions)
        if self._needs_epoch or metadata_hash != group.metadata_hash:
            self.epoch += 1
            self.records.append(records.epoch_record(group.id, self.epoch, metadata_hash))
        if group.has_partition_metadata:
            self.records.append(records.partition_metadata_tombstone(group.id))

    def target(self, now: Now) -> Target:
        """The member's target. Recomputed if the epoch is new and the assignment interval has passed."""
        group, settings = self._group, self._context.settings
        interval_ms = settings.times_of(group.id).assignment_interval_ms
        # A future time means that the clock was set back.
        is_early = 0 <= now.ms - group.assignment_ms < interval_ms
        if group.assignment_epoch >= self.epoch or is_early:
            return Target(group.assignment_epoch, group.target_of(self.member))
        change = Change(self._before, self.member, self._subscriptions)
        if self._assigning.defers(group, change):
            # The member keeps its current target until the new one is computed.
            return Target(group.assignment_epoch, group.target_of(self.member))
        changed = changed_targets(group, change, self._context.image, settings.assignors)
        for member_id, target in changed.items():
            self.records.append(records.target_record(group.id, member_id, target))
        self.records.append(records.target_epoch_record(group.id, self.epoch, now.ms))
        own = changed.get(self.member.id)
        return Target(self.epoch, group.targets[self.member.id] if own is None else own)

    def check_size(self, more: Sequence[Record], target: Target) -> None:
        """GroupError if the records, including `more`, exceed the batch size limit.

        A few small records, the common case, are not measured.
        """
        held = sum(map(len, target.partitions.values()))
        metadata_size = _metadata_size(self.member) if self.member is not self._before else 0
        bytes_max = self._context.batch_bytes_max()
        is_small = len(more) + len(self.records) <= _FEW and held + metadata_size <= _SMALL <= bytes_max // 20
        if is_small and not self._has_resolved:
            return
        # The current assignment record is still to come. It takes twice as many bytes per partition.
        last = records.target_record(self._group.id, self.member.id, dict(target.partitions))
        size = records.size_of((*more, *self.records, last, last))
        if size > bytes_max:
            raise GroupError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Group {self._group.id} needs an atomic write of {size} bytes, "
                f"but the limit is {bytes_max} (max.message.bytes).",
            )

    def reconcile(self, target: Target, owned: Owned, now: Now) -> None:
        """Take the member's next reconciliation step. Must be last: it changes timers, so no error may
        follow."""
        member, group = self.member, self._group
        if self.changed or not member.is_reconciled_to(target.epoch):
            subscribed = SubscribedTopics(self._subscriptions.topics_of(member), self._context.image)
            inputs = StepInputs(owned, subscribed, self.changed, group.ownership.holder)
            self.member = next_step(member, target, inputs)
            if self.member.epoch != member.epoch or self.member != member:
                self.records.append(records.current_record(group.id, self.member))
                self._time_revocation(now)
        group.is_fresh = True

    def _time_revocation(self, now: Now) -> None:
        """Limit a revocation by the member's rebalance timeout."""
        member = self.member
        key: TimerKey = (REBALANCE, self._group.id, member.id)
        if member.state is not MemberState.UNREVOKED:
            self._context.timers.cancel(key)
        elif member.classic is None:
            self._context.timers.set(key, now.tick_ms + member.rebalance_timeout_ms)


def _metadata_size(member: ConsumerMember) -> int:
    """The approximate size of the variable-length metadata of a member."""
    protocols = () if member.classic is None else member.classic.protocols
    return sum(map(len, member.topics)) + sum(len(metadata) for _, metadata in protocols)


def _due_for_refresh(
    subscriptions: Subscriptions, *, new_since: int, now_ms: int, interval_ms: int
) -> Iterator[str]:
    """A few expressions, oldest first, that were resolved before a topic was created or too long ago."""
    topics = 0
    # Ordered by time of resolution.
    for count, (regex, last) in enumerate(subscriptions.resolved.items()):
        age_ms = now_ms - last.time_ms
        is_due = age_ms > REFRESH_INTERVAL_MS_MIN and (last.version < new_since or age_ms > interval_ms)
        if not is_due or count == REFRESHED_AT_ONCE or topics > _TOPICS_AT_ONCE:
            return
        topics += len(last.topics)
        yield regex
