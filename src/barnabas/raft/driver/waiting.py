"""Appends that wait for their commit, with the futures of their callers."""

import asyncio
from collections import deque
from typing import Final, NamedTuple

from barnabas.raft.errors import LeadershipLost, QuorumClosed, RaftError, TooMuchUncommitted
from barnabas.raft.facts import LeaderAndEpoch
from barnabas.raft.settings import BATCH_BYTES_MAX

# Maximum bytes that a controller may append ahead of the quorum's commits.
UNCOMMITTED_BYTES_MAX: Final = 10 * BATCH_BYTES_MAX


class _Append(NamedTuple):
    last_offset: int
    size: int
    done: asyncio.Future[int]


class Uncommitted:
    """Pending appends in offset order."""

    def __init__(self) -> None:
        self._appends: deque[_Append] = deque()
        self._bytes = 0

    def check_room(self, size: int) -> None:
        if self._bytes + size > UNCOMMITTED_BYTES_MAX:
            raise TooMuchUncommitted(waiting=self._bytes, limit=UNCOMMITTED_BYTES_MAX)

    def add(self, last_offset: int, size: int) -> asyncio.Future[int]:
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._appends.append(_Append(last_offset, size, done))
        self._bytes += size
        return done

    def delivered(self, upto: int) -> None:
        """Resolve the appends below `upto`, which are committed and delivered."""
        while self._appends and self._appends[0].last_offset < upto:
            one = self._appends.popleft()
            self._bytes -= one.size
            if not one.done.done():
                one.done.set_result(one.last_offset)

    def leadership_lost(self, epoch: int, leader: LeaderAndEpoch, *, committed: int) -> None:
        """Fail the appends that are not committed; the others will still be delivered."""
        while self._appends and self._appends[-1].last_offset >= committed:
            one = self._appends.pop()
            self._bytes -= one.size
            error = LeadershipLost(leader=leader.leader, epoch=leader.epoch, asked_epoch=epoch)
            _fail(one.done, error)

    def stopped(self, why: str) -> None:
        """Fail all appends: this node will not learn of any more commits."""
        appends, self._appends, self._bytes = self._appends, deque(), 0
        for one in appends:
            _fail(one.done, QuorumClosed(why))


def _fail(done: asyncio.Future[int], error: RaftError) -> None:
    if not done.done():
        done.set_exception(error)
        # Mark it as retrieved: a caller may have gone, and the quorum's owner gets the cause anyway.
        done.exception()
