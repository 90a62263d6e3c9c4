"""Synchronizes the readers of a consumer with rebalances of its group.

A poll means that all messages delivered before are processed, and the reader has nothing to process until a
poll returns messages. Partitions are assigned and revoked only while this holds for every reader, so no
reader processes records of a partition that another member owns, and everything committed is processed.

Without a group the cost is two flags per poll.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from barnabas.client.consumer.fetch_buffer import FetchBuffer
from barnabas.client.consumer.message import Message


class ReaderState:
    """One reader's state at the barrier."""

    def __init__(self) -> None:
        # The buffer it reads from, once the consumer has started.
        self.buffer: FetchBuffer | None = None
        # It must pass the barrier before it takes the next message.
        self.must_poll = True
        # All messages delivered to it are processed; also true before the first message.
        self.all_processed = True
        # A poll is in progress.
        self.in_poll = False
        # It exceeded max.poll.interval.ms and has not polled since.
        self.expired = False
        self.commit_due = False
        self.polls = 0
        # The messages it left with, and its read index at that time.
        self.last_delivered: list[Message] = []
        self.left_at_index = 0
        self.last_activity: tuple[object, ...] = ()
        self.last_activity_s = 0.0

    def unprocessed(self) -> list[Message]:
        """Return the delivered messages that may not be processed yet."""
        buffer = self.buffer
        if self.all_processed or buffer is None:
            return []
        if buffer.at > self.left_at_index:
            # Read one by one since then: all but the last are processed.
            return buffer.ready[buffer.at - 1 : buffer.at]
        return self.last_delivered

    def mark_processed(self) -> None:
        """Its messages are processed, or were taken back."""
        self.all_processed, self.last_delivered = True, []

    def activity(self) -> tuple[object, ...]:
        """Return a value that changes with every read, including reads that bypass the barrier."""
        buffer = self.buffer
        return (self.polls,) if buffer is None else (self.polls, id(buffer.ready), buffer.at)


class RebalanceBarrier:
    """Create it in a running loop. `on_release` is called when readers may continue."""

    def __init__(self, on_release: Callable[[], None]) -> None:
        self.readers: list[ReaderState] = []
        self.is_held = False
        # Called when a commit is due and all messages of the reader are processed.
        self.on_commit_due: Callable[[ReaderState], None] = lambda reader: None
        self._on_release = on_release
        self._polled = asyncio.Event()
        self._callers: set[asyncio.Task[Any] | None] = set()

    def begin_poll(self, reader: ReaderState) -> None:
        reader.in_poll = reader.all_processed = reader.must_poll = True
        reader.expired = False
        reader.polls += 1
        reader.last_delivered = []
        if reader.commit_due:
            reader.commit_due = False
            self.on_commit_due(reader)
        self._polled.set()

    def end_poll(self, reader: ReaderState, found: list[Message]) -> None:
        """End a poll. Without messages, the reader still has nothing to process."""
        reader.polls += 1
        reader.in_poll = False
        if found:
            reader.last_delivered = found
            reader.left_at_index = 0 if reader.buffer is None else reader.buffer.at
            reader.all_processed = False
            reader.must_poll = self.is_held or reader.commit_due

    def request_commits(self) -> None:
        """Commit the messages of every reader: now if they are processed, otherwise at its next poll."""
        for reader in self.readers:
            if reader.all_processed:
                self.on_commit_due(reader)
            else:
                reader.commit_due = reader.must_poll = True

    @property
    def is_ready(self) -> bool:
        """Whether no reader has messages to process, and none has expired."""
        return all(each.all_processed and not each.expired for each in self.readers)

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Wait until no reader has messages to process, and deliver none until the block ends."""
        assert not self.is_held, "the barrier is already held"
        self.is_held = True
        for reader in self.readers:
            reader.must_poll = True
        try:
            while not self.is_ready:
                self._polled.clear()
                await self._polled.wait()
            yield
        finally:
            self.is_held = False
            self._on_release()

    @asynccontextmanager
    async def calling(self) -> AsyncIterator[None]:
        """Mark this task as running a user callback, or other work that the group waits for."""
        task = asyncio.current_task()
        before = set(self._callers)
        self._callers.add(task)
        try:
            yield
        finally:
            if task not in before:
                self._callers.discard(task)

    @property
    def is_in_callback(self) -> bool:
        """Whether the current task is a callback, which readers and the group wait for."""
        return bool(self._callers) and asyncio.current_task() in self._callers
