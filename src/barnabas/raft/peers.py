"""The interface for requests to the other members of the quorum. Unused with a single voter."""

from typing import NamedTuple, Protocol

from barnabas.protocol.error_codes import ErrorCode
from barnabas.raft.effects import Request
from barnabas.raft.events import Event
from barnabas.raft.facts import OffsetAndEpoch


class SnapshotPart(NamedTuple):
    """A part of a snapshot, and the total size."""

    error: ErrorCode
    size: int
    data: bytes


class Peers(Protocol):
    """Sends requests and waits for the answers, for at most the request timeout."""

    async def send(self, request: Request) -> Event:
        """The answer as an event; Unanswered without a valid one."""

    async def fetch_snapshot(
        self, leader: int, epoch: int, snapshot_id: OffsetAndEpoch, position: int
    ) -> SnapshotPart | None:
        """The bytes of the leader's snapshot from `position` on; None without an answer."""
