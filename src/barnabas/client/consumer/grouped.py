"""Mixin of Consumer for groups: subscribe and commit. The rest is in client/group."""

import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.seeking import Seeking
from barnabas.client.group.callbacks import Callback, Callbacks
from barnabas.client.group.errors import AssignedOtherwise, InCallback, NoGroup
from barnabas.client.group.member import Member
from barnabas.client.group.offsets import Committer, OffsetAndMetadata, offsets_given
from barnabas.client.group.topics import Wanted

# Kafka's limit of topic names.
_NAME_MAX: Final = 249


class Grouped(Seeking):
    _member_or_none: Member | None

    def _member(self, what: str, *, leaving: bool = False) -> Member:
        self._check(leaving=leaving)
        if self._member_or_none is None:
            raise NoGroup(what)
        return self._member_or_none

    async def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: "re.Pattern[str] | str | None" = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Subscribe to topics by name, or to all whose full name matches the pattern.

        It does not wait for the assignment. The callbacks, sync or async, are called while no reader is
        processing messages: on_revoked before partitions are given up, when offsets can still be committed;
        on_lost when another member owns them already (default: on_revoked).
        """
        member = self._member("subscribe()")
        names = [topics] if isinstance(topics, str) else list(topics)
        compiled = re.compile(pattern) if isinstance(pattern, str) else pattern
        if bool(names) == (compiled is not None):
            raise ValueError("subscribe() takes either topic names or a pattern")
        for name in names:
            if not name or len(name) > _NAME_MAX:
                raise ValueError(f"{name[:_NAME_MAX]!r} is not a valid topic name")
        core = self._check()
        if core.gate.is_in_callback:
            raise InCallback("subscribe()")
        if not core.is_subscribed and len(core.positions):
            raise AssignedOtherwise("partitions are assigned manually: call unassign() first")
        callbacks = Callbacks(on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost)
        member.subscribe(Wanted(names, compiled), callbacks)

    async def unsubscribe(self) -> None:
        """Revoke all partitions, with on_revoked, and leave the group."""
        member = self._member("unsubscribe()")
        if self._check().gate.is_in_callback:
            raise InCallback("unsubscribe()")
        await member.unsubscribe()

    @property
    def subscription(self) -> frozenset[str]:
        """The subscribed topics; for a pattern, those that it matches."""
        self._check()
        return frozenset() if self._member_or_none is None else self._member_or_none.topics

    async def commit(self, offsets: Mapping[tuple[str, int], int | OffsetAndMetadata] | None = None) -> None:
        """Commit the positions after all delivered messages, or the given offsets.

        CommitFailed if a partition no longer belongs to this member. During a rebalance, wait for its end and
        try again.
        """
        member = self._member("commit()", leaving=True)
        wanted = self.delivered if offsets is None else offsets_given(offsets)
        if wanted:
            await member.commit(wanted)

    @property
    def delivered(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offsets that commit() would commit: the position after the last message of each partition."""
        at = self._check(leaving=True).delivered()
        return {tp: OffsetAndMetadata(offset, "", epoch) for tp, (offset, epoch) in at.items()}

    def group_metadata(self) -> Committer:
        """Return group, generation and member id, which a transaction needs to commit offsets."""
        return self._member("group_metadata()", leaving=True).committer

    def calling(self) -> AbstractAsyncContextManager[None]:
        """Context for a task that works for a callback in another thread: calls do not wait for the group."""
        return self._check(leaving=True).gate.calling()

    async def committed(
        self, tps: Iterable[tuple[str, int]]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offset of each partition, assigned or not; None if there is none."""
        member = self._member("committed()", leaving=True)
        wanted = [TopicPartition(*each) for each in tps]
        return await member.committed(wanted) if wanted else {}
