"""What only a member of a group can meet, with the facts."""

from collections.abc import Iterable

from barnabas.base.ids import TopicPartition
from barnabas.client.errors import ClientError, Refused
from barnabas.protocol.error_codes import ErrorCode


class NoGroup(ClientError):
    """Asked for something that only a member of a group has, and no group.id was given."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} needs a group: set group.id")


class AssignedOtherwise(ClientError):
    """A consumer reads what it is assigned or what its group gives it, not both."""

    def __init__(self, why: str) -> None:
        super().__init__(why)


class CommitFailed(ClientError):
    """These offsets were not committed, because the partitions are no longer this member's.

    Whoever has them now begins at the last commit that was taken: what was read since is read again.
    """

    def __init__(self, tps: Iterable[TopicPartition], why: str) -> None:
        self.tps = frozenset(tps)
        super().__init__(f"not committed: {', '.join(map(str, sorted(self.tps)))}: {why}")
        self.why = why


class GroupFailed(Refused):
    """The group does not take this member, and will not by itself; subscribe() tries again."""

    def __init__(self, code: ErrorCode, *, group: str, message: str | None = None) -> None:
        super().__init__(code, about=f"group {group}", message=message)
        self.group = group
        self.retriable = False


class FencedInstance(GroupFailed):
    """Another member has come with the same group.instance.id. Final: one of the two is one too many."""


class InCallback(ClientError):
    """Reading, subscribing and closing are not possible inside of a rebalance callback."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not possible in a rebalance callback: it would deadlock")


def group_failed(code: ErrorCode, *, group: str, message: str | None = None) -> GroupFailed:
    fenced = (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID)
    kind = FencedInstance if code in fenced else GroupFailed
    return kind(code, group=group, message=message)
