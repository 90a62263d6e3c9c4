"""Outlets send bytes and file ranges in order, however slowly the other side reads. With real sockets."""

import asyncio
import errno
import os
import socket
import time
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from barnabas.server.network.outlet import (
    SEND_MAX,
    SENT_PIECES_MAX,
    BusyPoll,
    FlushQueue,
    Part,
    SocketOutlet,
    joined_parts,
)
from barnabas.server.network.transport_outlet import TransportOutlet
from barnabas.server.network.writable import Writable
from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.log import LogRead

pytestmark = pytest.mark.kernel

LARGE = Random(1).randbytes(3_000_000)


class Scene:
    """An outlet on one end of a pair of sockets, and whoever reads at the other."""

    def __init__(self, directory: Path, poll_ns: int) -> None:
        self.fs = DiskFileSystem()
        path = str(directory / "records")
        (directory / "records").write_bytes(LARGE)
        self.file = self.fs.open(path)
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.theirs.setblocking(False)
        self.drained = 0
        self.broken: list[OSError] = []
        flush_queue = FlushQueue(BusyPoll(self._ticks_ns, self._used_ns, poll_ns))
        self.looks = 0
        self.passed_ns = 0
        self.writable = Writable()
        self.outlet = SocketOutlet(self.writable, flush_queue, self.ours, self._drained, self.broken.append)

    def _drained(self) -> None:
        self.drained += 1

    def _ticks_ns(self) -> int:
        self.looks += 1
        return time.monotonic_ns() + self.passed_ns

    def _used_ns(self) -> int:
        return time.thread_time_ns() + self.passed_ns

    async def is_awake(self) -> bool:
        looks = self.looks
        for _ in range(5):
            await asyncio.sleep(0)
        return self.looks > looks

    def records(self, *ranges: tuple[int, int]) -> LogRead:
        found = [self.fs.range(self.file, at, size) for at, size in ranges]
        return LogRead(list(found), sum(size for _, size in ranges))

    async def read(self, size: int) -> bytes:
        loop, parts, left = asyncio.get_running_loop(), [], size
        while left > 0:
            part = await asyncio.wait_for(loop.sock_recv(self.theirs, min(left, 65536)), 5)
            if not part:
                break
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        self.outlet.close()
        self.writable.close()
        self.ours.close()
        self.theirs.close()
        self.file.close()


@asynccontextmanager
async def scene(directory: Path, poll_ns: int = 0) -> AsyncIterator[Scene]:
    made = Scene(directory, poll_ns)
    try:
        yield made
    finally:
        made.close()


def test_a_writable_socket_wakes_the_loop(tmp_path: Path) -> None:
    async def story() -> None:
        # For longer than a busy machine takes for this.
        async with scene(tmp_path, poll_ns=10**12) as here:
            here.outlet.send([LARGE])
            await asyncio.sleep(0)
            assert await here.is_awake()
            # Nobody has read for so long: it sleeps until somebody does.
            here.passed_ns += 10**12
            await here.is_awake()
            assert not await here.is_awake()
            await here.read(len(LARGE) // 2)
            assert here.outlet.waiting > 0
            assert await here.is_awake()

    asyncio.run(story())


def test_a_small_response_is_sent_at_the_end_of_the_iteration(tmp_path: Path) -> None:
    async def story() -> None:
        async with scene(tmp_path) as here:
            here.outlet.send([b"hello, "])
            here.outlet.send([b"you"])

            assert (here.outlet.waiting, here.outlet.taken) == (10, 0)
            await asyncio.sleep(0)
            assert here.theirs.recv(100) == b"hello, you"
            assert (here.outlet.waiting, here.outlet.taken, here.drained) == (0, 10, 1)

    asyncio.run(story())


def test_bytes_and_file_ranges_are_sent_in_order(tmp_path: Path) -> None:
    async def story() -> None:
        async with scene(tmp_path) as here:
            parts: list[Part] = [
                b"head",
                here.records((10, 100), (500, 50)),
                b"between",
                here.records((0, 7)),
                b"!",
            ]
            expected = b"head" + LARGE[10:110] + LARGE[500:550] + b"between" + LARGE[:7] + b"!"

            here.outlet.send(parts)

            assert await here.read(len(expected)) == expected
            assert here.outlet.sendfile_bytes == 157

    asyncio.run(story())


def test_unsent_data_waits_until_the_socket_is_writable(tmp_path: Path) -> None:
    async def story() -> None:
        async with scene(tmp_path) as here:
            here.outlet.send([b"a" * 100, here.records((0, len(LARGE))), b"b" * 100])
            here.outlet.send([b"c" * 100])
            await asyncio.sleep(0)
            held = here.outlet.waiting
            got = await here.read(len(LARGE) + 300)

            assert 0 < held < len(LARGE) + 300
            assert got == b"a" * 100 + LARGE + b"b" * 100 + b"c" * 100
            assert (here.outlet.waiting, here.drained) == (0, 1)
            assert here.outlet.taken == len(got)

    asyncio.run(story())


def test_a_small_response_waits_behind_a_partly_sent_response(tmp_path: Path) -> None:
    async def story() -> None:
        async with scene(tmp_path) as here:
            large = bytes(2_000_000)
            here.outlet.send([large])
            await asyncio.sleep(0)
            here.outlet.send([b"last"])

            assert (await here.read(len(large) + 4))[-4:] == b"last"

    asyncio.run(story())


def test_one_iteration_sends_at_most_the_limit(tmp_path: Path) -> None:
    async def story() -> None:
        async with scene(tmp_path) as here:
            here.ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 20)
            copies = [(0, len(LARGE))] * 4

            here.outlet.send([here.records(*copies)])
            await asyncio.sleep(0)

            assert 0 < here.outlet.taken <= SEND_MAX
            assert await here.read(4 * len(LARGE)) == LARGE * 4

    asyncio.run(story())


def test_a_lost_peer_is_reported_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with scene(tmp_path) as here:
            here.theirs.close()

            here.outlet.send([b"hello"])
            await asyncio.sleep(0)

            assert [type(error) for error in here.broken] == [BrokenPipeError]

    asyncio.run(story())


def test_a_range_of_a_file_that_was_cut_breaks_the_connection(tmp_path: Path) -> None:
    async def story() -> None:
        async with scene(tmp_path) as here:
            records = here.records((0, len(LARGE)))
            here.file.truncate(10)

            here.outlet.send([b"head", records])
            await asyncio.sleep(0)

            assert len(here.broken) == 1
            assert "bytes before the end of the range to send" in str(here.broken[0])

    asyncio.run(story())


def test_a_removed_file_is_still_sent(tmp_path: Path) -> None:
    async def story() -> None:
        async with scene(tmp_path) as here:
            here.outlet.send([here.records((0, len(LARGE)))])
            here.fs.remove(here.file.path)
            here.file.close()

            assert await here.read(len(LARGE)) == LARGE

    asyncio.run(story())


def test_an_outlet_closed_before_the_end_of_the_iteration_sends_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with scene(tmp_path) as here:
            here.outlet.send([b"hello"])
            here.outlet.close()
            await asyncio.sleep(0)

            assert (here.outlet.waiting, here.outlet.taken, here.drained, here.broken) == (0, 0, 0, [])

    asyncio.run(story())


def test_a_closed_outlet_does_not_write_to_a_reused_descriptor(tmp_path: Path) -> None:
    async def story() -> None:
        async with scene(tmp_path) as here:
            here.outlet.close()
            # The lowest free number is given out next: one of these is the one that the outlet had.
            others = [os.open(tmp_path / f"other-{number}", os.O_RDWR | os.O_CREAT) for number in range(8)]

            here.outlet.send([b"hello"])
            await asyncio.sleep(0)

            assert [os.fstat(other).st_size for other in others] == [0] * 8
            assert [error.errno for error in here.broken] == [errno.EBADF]
            for other in others:
                os.close(other)

    asyncio.run(story())


def test_many_waiting_pieces_are_sent_in_order_and_released(tmp_path: Path) -> None:
    async def story() -> None:
        async with scene(tmp_path) as here:
            pieces = [b"%07d" % number * 10_000 for number in range(3 * SENT_PIECES_MAX)]
            views: list[Part] = [memoryview(piece) for piece in pieces]
            kept = [weakref.ref(view) for view in views]
            here.outlet.send(views)
            views = []
            await asyncio.sleep(0)

            assert here.outlet.waiting > 0
            assert await here.read(70_000 * 2 * SENT_PIECES_MAX) == b"".join(pieces[: 2 * SENT_PIECES_MAX])
            # Those on their way in the socket have left, too.
            assert not any(view() for view in kept[: 2 * SENT_PIECES_MAX])
            here.outlet.send([b"last"])
            rest = b"".join(pieces[2 * SENT_PIECES_MAX :]) + b"last"
            assert await here.read(len(rest)) == rest

    asyncio.run(story())


class Buffering(asyncio.Transport):
    """A transport that accepts everything and reports how much of it is not sent."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.unsent = 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.high = high

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))
        self.unsent += len(data)


def test_a_transport_gets_no_more_while_it_has_no_room(tmp_path: Path) -> None:
    async def story() -> None:
        async with scene(tmp_path) as here:
            transport, drained = Buffering(), []
            outlet = TransportOutlet(transport, lambda: drained.append(1))

            outlet.send([b"first"])
            outlet.pause()
            outlet.send([here.records((0, 10)), b"last"])
            before = list(transport.written)
            transport.unsent = 0
            outlet.resume_soon()
            assert drained == []
            await asyncio.sleep(0)

            assert before == [b"first"]
            assert transport.written == [b"first", LARGE[:10], b"last"]
            assert (outlet.waiting, drained) == (0, [1])

    asyncio.run(story())


def test_neighbouring_small_parts_become_one() -> None:
    large = bytes(100_000)

    parts = joined_parts([b"a", memoryview(b"b"), large, memoryview(b"c"), b"d"])

    assert [bytes(part) for part in parts if not isinstance(part, LogRead)] == [b"ab", large, b"cd"]
