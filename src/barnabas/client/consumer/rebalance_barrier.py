"""Synchronizes the readers of a consumer with rebalances of its group.

A reader is *inside* from when it polls until it leaves with messages: a poll means that all earlier messages
are processed. Partitions are assigned and revoked only while every reader is inside, so no reader processes
records of a partition that another member owns, and everything committed then is processed.

Without a group the cost is two flags per poll.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from barnabas.client.consumer.fetch_buffer import Delivery
from barnabas.client.consumer.message import Message


class Visitor:
    """One reader's state at the gate."""

    def __init__(self) -> None:
        # The buffer it reads from, once the consumer has started.
        self.delivery: Delivery | None = None
        # It must pass the gate before it takes the next message.
        self.slow = True
        # All messages delivered to it are processed; also true before the first message.
        self.inside = True
        # A poll is in progress.
        self.in_call = False
        # It exceeded max.poll.interval.ms and has not polled since.
        self.expired = False
        self.commit_due = False
        self.visits = 0
        # The messages it left with, and its read index at that time.
        self.in_hand: list[Message] = []
        self.left_at = 0
        self.seen: tuple[object, ...] = ()
        self.seen_s = 0.0

    def unfinished(self) -> list[Message]:
        """Return the delivered messages that may not be processed yet."""
        delivery = self.delivery
        if self.inside or delivery is None:
            return []
        if delivery.at > self.left_at:
            # Read one by one since then: all but the last are processed.
            return delivery.ready[delivery.at - 1 : delivery.at]
        return self.in_hand

    def put_down(self) -> None:
        """Its messages are processed, or were taken back."""
        self.inside, self.in_hand = True, []

    def pulse(self) -> tuple[object, ...]:
        """Return a value that changes with every read, including reads that bypass the gate."""
        delivery = self.delivery
        return (self.visits,) if delivery is None else (self.visits, id(delivery.ready), delivery.at)


class Gate:
    """Create it in a running loop. `on_open` is called when readers may continue."""

    def __init__(self, on_open: Callable[[], None]) -> None:
        self.visitors: list[Visitor] = []
        self.closed = False
        # Called for a reader that is inside when a commit of its messages is due.
        self.on_commit_due: Callable[[Visitor], None] = lambda visitor: None
        self._on_open = on_open
        self._came = asyncio.Event()
        self._callers: set[asyncio.Task[Any] | None] = set()

    def come_in(self, visitor: Visitor) -> None:
        visitor.in_call = visitor.inside = visitor.slow = True
        visitor.expired = False
        visitor.visits += 1
        visitor.in_hand = []
        if visitor.commit_due:
            visitor.commit_due = False
            self.on_commit_due(visitor)
        self._came.set()

    def go_out(self, visitor: Visitor, found: list[Message]) -> None:
        """End a poll. A reader without messages stays inside."""
        visitor.visits += 1
        visitor.in_call = False
        if found:
            visitor.in_hand = found
            visitor.left_at = 0 if visitor.delivery is None else visitor.delivery.at
            visitor.inside = False
            visitor.slow = self.closed or visitor.commit_due

    def ask_to_commit(self) -> None:
        """Request a commit of every reader's messages: now if it is inside, otherwise at its next poll."""
        for visitor in self.visitors:
            if visitor.inside:
                self.on_commit_due(visitor)
            else:
                visitor.commit_due = visitor.slow = True

    @property
    def is_empty(self) -> bool:
        """Whether every reader is inside and none has expired."""
        return all(each.inside and not each.expired for each in self.visitors)

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Wait until every reader is inside, and keep them inside until the block ends."""
        assert not self.closed, "the gate is already held"
        self.closed = True
        for visitor in self.visitors:
            visitor.slow = True
        try:
            while not self.is_empty:
                self._came.clear()
                await self._came.wait()
            yield
        finally:
            self.closed = False
            self._on_open()

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
