"""The way to the other members of the quorum: a port. With one voter nobody goes it."""

from typing import NamedTuple, Protocol

from barnabas.protocol.error_codes import ErrorCode
from barnabas.raft.effects import Request
from barnabas.raft.events import Event
from barnabas.raft.facts import OffsetAndEpoch


class SnapshotPart(NamedTuple):
    """Some bytes of a snapshot, and how many it has in all."""

    error: ErrorCode
    size: int
    data: bytes


class Peers(Protocol):
    """Sends requests and waits for what comes back, each no longer than the request timeout."""

    async def send(self, request: Request) -> Event:
        """The answer as an event; Unanswered if none came, or none that could be read."""

    async def fetch_snapshot(
        self, leader: int, epoch: int, snapshot_id: OffsetAndEpoch, position: int
    ) -> SnapshotPart | None:
        """The bytes of the leader's snapshot from `position` on; None if no answer came."""
