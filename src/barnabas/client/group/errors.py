"""Errors of group members."""

from collections.abc import Iterable

from barnabas.base.ids import TopicPartition
from barnabas.client.errors import ClientError, Refused
from barnabas.protocol.error_codes import ErrorCode


class NoGroup(ClientError):
    """The call needs a group, and group.id is not set."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} needs a group: set group.id")


class AssignedOtherwise(ClientError):
    """Partitions are assigned either manually or by the group, not both."""

    def __init__(self, why: str) -> None:
        super().__init__(why)


class CommitFailed(ClientError):
    """The offsets were not committed, because this member no longer owns the partitions.

    The new owner starts at the last successful commit: records read since then are read again.
    """

    def __init__(self, tps: Iterable[TopicPartition], why: str) -> None:
        self.tps = frozenset(tps)
        super().__init__(f"not committed: {', '.join(map(str, sorted(self.tps)))}: {why}")
        self.why = why


class GroupFailed(Refused):
    """The group rejects this member for good; subscribe() tries again."""

    def __init__(self, code: ErrorCode, *, group: str, message: str | None = None) -> None:
        super().__init__(code, about=f"group {group}", message=message)
        self.group = group
        self.retriable = False


class FencedInstance(GroupFailed):
    """Another member uses the same group.instance.id. Fatal: only one of them may run."""


class InCallback(ClientError):
    """Reading, subscribing and closing are not possible in a rebalance callback."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not possible in a rebalance callback: it would deadlock")


class CallbackFailed(ClientError):
    """A rebalance callback raised `__cause__`. The rebalance continued; the reader raises this once."""

    def __init__(self, which: str, error: Exception) -> None:
        super().__init__(f"{which} raised {error!r}")
        self.which = which
        self.__cause__ = error


def group_failed(code: ErrorCode, *, group: str, message: str | None = None) -> GroupFailed:
    fenced = (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID)
    kind = FencedInstance if code in fenced else GroupFailed
    return kind(code, group=group, message=message)
