"""Members of groups as a load: raw connections, one for each member, all in one event loop.

Whatever can be is encoded once and patched, and of an answer no more is read than the member needs, so that
the client is not what limits; how busy it was is said beside every time. A member does nothing but what the
protocol asks of it, and it heartbeats as soon as the answer to the last heartbeat is there.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, Protocol, TypeVar, cast

import uvloop

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import encode_request
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
from barnabas.protocol.messages.group_offsets import OffsetFetchRequest
from support.wire.client import WireClient

CLIENT_ID = "bench"
STABLE_WITHIN_S = 180.0
COORDINATOR_WITHIN_S = 60.0
# As many connections are opened at a time: a backlog has its limit.
OPENED_AT_ONCE = 50
_SIZE = Struct(">i")
NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


class MemberRefused(Exception):
    """The broker answered with an error that no member of a healthy group gets."""


class Line(asyncio.Protocol):
    """One connection: whole answers, without their lengths, go to answered()."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._half = b""
        # Sent and not answered; answers come in order.
        self.in_flight = 0
        self.lost: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.lost is not None:
            self.lost()

    def send(self, frame: bytes | bytearray) -> None:
        assert self._transport is not None, "it is not connected"
        self.in_flight += 1
        self._transport.write(frame)

    def data_received(self, data: bytes) -> None:
        data = self._half + data if self._half else data
        at, end = 0, len(data)
        while end - at >= _SIZE.size:
            (size,) = _SIZE.unpack_from(data, at)
            if end - at < _SIZE.size + size:
                break
            self.in_flight -= 1
            self.answered(data[at + _SIZE.size : at + _SIZE.size + size])
            at += _SIZE.size + size
        self._half = data[at:]

    def answered(self, answer: bytes) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self.lost = None
        if self._transport is not None:
            self._transport.close()


class Member(Protocol):
    """What a group asks of its members, of either protocol."""

    lost: Callable[[], None] | None

    def join(self) -> None: ...

    def leave(self) -> None: ...

    def close(self) -> None: ...


class Group:
    """What its members tell: when all are stable, and when all have left."""

    def __init__(self, name: str, size: int) -> None:
        loop = asyncio.get_running_loop()
        self.name = name
        self.size = size
        self.stable: asyncio.Future[None] = loop.create_future()
        self.left: asyncio.Future[None] = loop.create_future()
        self._gone = 0

    @property
    def is_ending(self) -> bool:
        return self.stable.done()

    def now_stable(self) -> None:
        if not self.stable.done():
            self.stable.set_result(None)

    def one_left(self, count: int = 1) -> None:
        self._gone += count
        if self._gone >= self.size and not self.left.done():
            self.left.set_result(None)

    def refused(self, what: str) -> None:
        for future in (self.stable, self.left):
            if not future.done():
                future.set_exception(MemberRefused(f"{self.name}: {what}"))
                return


@dataclass(frozen=True, slots=True)
class Turn:
    """Seconds from the first join to all stable, and the share of them that this client was busy."""

    seconds: float
    client_share: float


M = TypeVar("M", bound=Line)


async def opened(address: str, make: Callable[[], M], count: int) -> list[M]:
    """Connected members, before any of them has joined."""
    host, _, port = address.rpartition(":")
    loop = asyncio.get_running_loop()
    found: list[M] = []
    while len(found) < count:
        some = min(OPENED_AT_ONCE, count - len(found))
        made = await asyncio.gather(*(loop.create_connection(make, host, int(port)) for _ in range(some)))
        found += [member for _, member in made]
    return found


async def stabilise(group: Group, members: Sequence[Member]) -> Turn:
    """All join at once; back when all of them are stable."""
    for member in members:
        member.lost = lambda: group.refused("a connection was closed")
    used, begun = time.process_time(), time.perf_counter()
    for member in members:
        member.join()
    await asyncio.wait_for(group.stable, STABLE_WITHIN_S)
    took = time.perf_counter() - begun
    return Turn(took, (time.process_time() - used) / took)


async def disband(group: Group, members: Sequence[Member]) -> None:
    """Everybody leaves, so that nothing of this group keeps the broker busy later."""
    for member in members:
        member.leave()
    await asyncio.wait_for(group.left, STABLE_WITHIN_S)


def close_all(members: Sequence[Member]) -> None:
    for member in members:
        member.close()


T = TypeVar("T")


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def frame_of(body: object, version: int, key: ApiKey) -> bytes:
    return encode_request(body, version, key=key, correlation_id=1, client_id=CLIENT_ID)


def await_coordinator(address: str, group: str) -> None:
    """Until the coordinator of a group is there and has loaded what it has to."""
    deadline = time.monotonic() + COORDINATOR_WITHIN_S
    with WireClient(address) as client:
        while True:
            found = client.ask(FindCoordinatorRequest(key=group, key_type=0), 3)
            code = ErrorCode(found.error_code)
            if code is ErrorCode.NONE:
                code = ErrorCode(client.ask(OffsetFetchRequest(group_id=group, topics=None), 7).error_code)
            if code is ErrorCode.NONE:
                return
            assert code in NOT_YET, code.name
            assert time.monotonic() < deadline, f"no coordinator for {group}: {code.name}"
            time.sleep(0.02)
