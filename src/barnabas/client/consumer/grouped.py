"""What a consumer can do that has a group: subscribe, and commit. The rest of it is in client/group."""

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

# Kafka's: topic names are no longer than this, and a subscription is held by every member and the broker.
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
        """Read what the group gives this member of these topics, or of those whose whole name matches.

        It does not wait for the group. The callbacks, plain or async, are called with the partitions that
        come and go, while no reader is at work on a message: on_revoked before they are given back, when they
        can still be committed; on_lost when they are another's already (on_revoked if there is no on_lost).
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
        """Give everything back, with on_revoked, and leave the group."""
        member = self._member("unsubscribe()")
        if self._check().gate.is_in_callback:
            raise InCallback("unsubscribe()")
        await member.unsubscribe()

    @property
    def subscription(self) -> frozenset[str]:
        """The topics that are subscribed to; of a pattern, those that it matches."""
        self._check()
        return frozenset() if self._member_or_none is None else self._member_or_none.topics

    async def commit(self, offsets: Mapping[tuple[str, int], int | OffsetAndMetadata] | None = None) -> None:
        """Commit the position of everything that was handed out so far, or these offsets.

        CommitFailed if a partition is not this member's any more. A rebalance that is under way is waited
        for, and then the commit is tried again.
        """
        member = self._member("commit()", leaving=True)
        wanted = self.delivered if offsets is None else offsets_given(offsets)
        if wanted:
            await member.commit(wanted)

    @property
    def delivered(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What commit() would commit: the position after the last message of each partition."""
        at = self._check(leaving=True).delivered()
        return {tp: OffsetAndMetadata(offset, "", epoch) for tp, (offset, epoch) in at.items()}

    def group_metadata(self) -> Committer:
        """In whose name this member commits now; what a transaction needs to commit offsets with it."""
        return self._member("group_metadata()", leaving=True).committer

    def calling(self) -> AbstractAsyncContextManager[None]:
        """While a callback runs elsewhere, and this task works for it: the group is not waited for."""
        return self._check(leaving=True).gate.calling()

    async def committed(
        self, tps: Iterable[tuple[str, int]]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for each partition, assigned or not; None if nothing."""
        member = self._member("committed()", leaving=True)
        wanted = [TopicPartition(*each) for each in tps]
        return await member.committed(wanted) if wanted else {}
