"""What the checklist asks of a client in a group, and of who looks after groups. client.py has the rest."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Literal, Protocol, TypeAlias

from support.clients.client import WAIT_SECONDS_MAX, Seen

GroupProtocol: TypeAlias = Literal["classic", "consumer"]

# Of the classic protocol; in the new one the broker says how often. Heartbeats are frequent, because a member
# hears with one that the others come and go.
SESSION_MS = 10_000
HEARTBEAT_MS = 100
# How long a member works when it is asked what it has.
MOMENT_MS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOptions:
    """Where the group has no offset, a member begins with the first record. It commits when it is told to."""

    group: str
    protocol: GroupProtocol = "classic"
    # Of a static member.
    instance: str | None = None


class Member(Protocol):
    """A consumer that is subscribed to one topic."""

    def partitions(self) -> frozenset[int]:
        """Work for a moment; the partitions that it has then."""

    def read(self, count: int) -> list[Seen]:
        """The next `count` records. Refused if the client reports an error, AssertionError if none come."""

    def commit(self) -> None:
        """All that was read. Some commit when they end, so nothing is asked of a member afterwards."""

    def close(self) -> None:
        """Leave, as a program that ends: a static member is expected back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    offset: int
    metadata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSeen:
    """Kafka's word for the state, and what each member has of the one topic."""

    state: str
    members: tuple[frozenset[int], ...]


class GroupAdmin(Protocol):
    """Refused if the broker says no. Whoever cannot do a thing has declared it and is never asked."""

    def commit(self, group: str, topic: str, commits: Mapping[int, Committed]) -> None:
        """As a consumer that is no member."""

    def committed(self, group: str, topic: str, partitions: Sequence[int]) -> Mapping[int, Committed]:
        """By partition, where there is something."""

    def groups(self) -> Collection[str]: ...

    def describe(self, group: str, topic: str) -> GroupSeen: ...

    def delete(self, group: str) -> None: ...

    def alter_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None: ...

    def delete_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> None: ...

    def close(self) -> None: ...


class Handed:
    """What came while nobody asked for it waits here; what was handed out is what may be committed."""

    def __init__(self, poll: Callable[[], Sequence[Seen]]) -> None:
        self._poll = poll
        self._waiting: list[Seen] = []
        # The next offset of each partition.
        self.positions: dict[int, int] = {}

    def work(self) -> None:
        self._waiting += self._poll()

    def read(self, count: int) -> list[Seen]:
        deadline = monotonic() + WAIT_SECONDS_MAX
        while len(self._waiting) < count:
            assert monotonic() < deadline, f"{len(self._waiting)} of {count} records came"
            self.work()
        found, self._waiting = self._waiting[:count], self._waiting[count:]
        self.positions |= {each.partition: each.offset + 1 for each in found}
        return found
