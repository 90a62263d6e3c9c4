"""The content of files on a simulated disk: the current and the durable one.

A write is visible at once and durable after a sync. After a power loss each unsynced write is kept, lost, or
torn (only some of its sectors are kept); and the size may have grown without the bytes.
"""

import errno
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Final

from barnabas.sim.names import Node, fail

SECTOR: Final = 512
PAGE: Final = 4096
# Longer than any segment, to keep a bug in a position from exhausting memory.
FILE_SIZE_MAX: Final = 1 << 31

# The position and bytes of a write; bytes are None for a truncation.
Change = tuple[int, bytes | None]


@dataclass(eq=False, slots=True)
class FileNode(Node):
    """One file."""

    content: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    unsynced: list[Change] = field(default_factory=list)
    # Numbers of evicted pages.
    cold: set[int] = field(default_factory=set)
    # Numbers of pages in memory whose bytes a failed sync has not written; the kernel counts them as clean.
    unwritten: set[int] = field(default_factory=set)
    locked: bool = False

    def read(self, at: int, size: int) -> bytes:
        self._need_position(at)
        self._warm(at, size)
        return bytes(self.content[at : at + size])

    def first_cold(self, at: int, size: int) -> int | None:
        """The position of the first byte of a range that is not in memory."""
        if not self.cold:
            return None
        for page in _pages(at, min(size, len(self.content) - at)):
            if page in self.cold:
                return max(at, page * PAGE)
        return None

    def cool(self) -> None:
        """Evict all pages. If a failed sync did not write a page, its old bytes return."""
        size = len(self.content)
        self.cold = set(_pages(0, size))
        for page in sorted(self.unwritten):
            start, end = page * PAGE, min((page + 1) * PAGE, size)
            if start < end:
                old = self.durable[start:end]
                self.content[start:end] = old + bytes(end - start - len(old))
        self.unwritten.clear()

    def write(self, at: int, data: bytes) -> None:
        self._need_position(at)
        if not data:
            return
        self._need_position(at + len(data))
        self._warm(at, len(data))
        _put(self.content, at, data)
        self.unsynced.append((at, data))
        for page in sorted(self.unwritten.intersection(_pages(at, len(data)))):
            # The page is dirty again, and the next sync writes all of it.
            start = page * PAGE
            self.unsynced.append((start, bytes(self.content[start : start + PAGE])))
            self.unwritten.discard(page)

    def truncate(self, size: int) -> None:
        self._need_position(size)
        _resize(self.content, size)
        self.cold = {page for page in self.cold if page * PAGE < size}
        self.unsynced.append((size, None))

    def sync(self) -> None:
        for at, data in self.unsynced:
            _apply(self.durable, at, data)
        self.unsynced.clear()

    def forget_unsynced(self) -> None:
        """After a failed sync the pages count as clean, and no later sync writes them."""
        for at, data in self.unsynced:
            if data is not None:
                self.unwritten.update(_pages(at, len(data)))
        self.unsynced.clear()

    def rot(self, at: int, mask: int) -> None:
        """Flip bits of one byte in the current, durable and unsynced content."""
        assert 0 < mask < 256, mask
        self.content[at] ^= mask
        if at < len(self.durable):
            self.durable[at] ^= mask
        for position, (start, data) in enumerate(self.unsynced):
            if data is not None and start <= at < start + len(data):
                rotten = bytearray(data)
                rotten[at - start] ^= mask
                self.unsynced[position] = (start, bytes(rotten))

    def lose_power(self, rng: Random) -> str:
        """Keep some unsynced writes. Describe the loss; empty if nothing was lost."""
        waiting = len(self.unsynced)
        mode = rng.choice(("all", "none", "first", "any", "any"))
        if mode == "all":
            self.sync()
        elif mode == "first":
            self._keep_first(rng)
        elif mode == "any":
            self._keep_any(rng)
        self.unsynced.clear()
        before, self.content = self.content, bytearray(self.durable)
        self.locked = False
        self.cold = set()
        self.unwritten = set()
        if before == self.content:
            return ""
        return f"{len(before)} bytes became {len(self.content)}, kept of {waiting} writes: {mode}"

    def _keep_first(self, rng: Random) -> None:
        first = rng.randint(0, len(self.unsynced))
        for at, data in self.unsynced[:first]:
            _apply(self.durable, at, data)
        if first < len(self.unsynced):
            at, data = self.unsynced[first]
            if data is not None:
                end, _ = rng.choice(_sectors(at, at + len(data)))
                _apply(self.durable, at, data[: end - at])

    def _keep_any(self, rng: Random) -> None:
        for at, data in self.unsynced:
            fate = rng.choice(("kept", "torn", "lost"))
            if fate == "kept":
                self._grow(rng, at)
                _apply(self.durable, at, data)
            elif data is not None:
                self._tear(rng, at, data, keep=0.5 if fate == "torn" else 0.0)

    def _tear(self, rng: Random, at: int, data: bytes, *, keep: float) -> None:
        for start, end in _sectors(at, at + len(data)):
            if rng.random() < keep:
                self._grow(rng, start)
                _put(self.durable, start, data[start - at : end - at])
        if rng.random() < 0.3:
            self._grow(rng, at + len(data))

    def _grow(self, rng: Random, size: int) -> None:
        """Grow the durable size without the bytes: zeros, or old content of another file."""
        missing = size - len(self.durable)
        if missing <= 0:
            return
        # Random bytes, not this file's own: they stand for blocks that another file used before.
        self.durable += rng.randbytes(missing) if rng.random() < 0.25 else bytes(missing)

    def _warm(self, at: int, size: int) -> None:
        if self.cold:
            self.cold.difference_update(_pages(at, min(size, len(self.content) - at)))

    def _need_position(self, at: int) -> None:
        if at < 0 or at > FILE_SIZE_MAX:
            fail(errno.EINVAL if at < 0 else errno.EFBIG, self.place.path() if self.place else "")


def _pages(at: int, size: int) -> range:
    return range(at // PAGE, (at + size - 1) // PAGE + 1) if size > 0 else range(0)


def _sectors(start: int, end: int) -> list[tuple[int, int]]:
    """Split a range of bytes at sector boundaries."""
    cuts = [start, *range((start // SECTOR + 1) * SECTOR, end, SECTOR), end]
    return list(pairwise(cuts))


def _apply(content: bytearray, at: int, data: bytes | None) -> None:
    if data is None:
        _resize(content, at)
    elif data:
        _put(content, at, data)


def _put(content: bytearray, at: int, data: bytes) -> None:
    if at > len(content):
        content.extend(bytes(at - len(content)))
    content[at : at + len(data)] = data


def _resize(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))
