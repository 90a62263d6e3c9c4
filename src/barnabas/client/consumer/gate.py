"""Where the readers of a consumer and its group meet.

A reader is *inside* from when it comes for messages until it leaves with some: whatever it was handed before
is dealt with, for it came back. Partitions change hands only while every reader is inside, so nobody works on
records of a partition that another member has by now, and what is committed then was dealt with.

A reader without a group passes by: it sets two flags.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from barnabas.client.consumer.delivery import Delivery
from barnabas.client.consumer.message import Message


class Visitor:
    """One reader as the gate sees it."""

    def __init__(self) -> None:
        # Where its messages lie, once the consumer has started.
        self.delivery: Delivery | None = None
        # It must not take what is ready without coming to the gate first.
        self.slow = True
        # Nothing that it was handed may still be in work. So it is before the first message, too.
        self.inside = True
        # It is in a call right now, however long that takes.
        self.in_call = False
        # It stayed away too long, and counts as gone until it comes back.
        self.expired = False
        self.commit_due = False
        self.visits = 0
        # What it left with, and how far it had read then.
        self.in_hand: list[Message] = []
        self.left_at = 0
        self.seen: tuple[object, ...] = ()
        self.seen_s = 0.0

    def unfinished(self) -> list[Message]:
        """What it was handed and may not have dealt with, for it has not come back since."""
        delivery = self.delivery
        if self.inside or delivery is None:
            return []
        if delivery.at > self.left_at:
            # One by one since then: all but the last are dealt with.
            return delivery.ready[delivery.at - 1 : delivery.at]
        return self.in_hand

    def put_down(self) -> None:
        """What it has in hand is dealt with, or was taken back."""
        self.inside, self.in_hand = True, []

    def pulse(self) -> tuple[object, ...]:
        """Something that changes whenever it reads, also where it does not come to the gate."""
        delivery = self.delivery
        return (self.visits,) if delivery is None else (self.visits, id(delivery.ready), delivery.at)


class Gate:
    """Made in a running loop. `on_open` is called when readers may go on."""

    def __init__(self, on_open: Callable[[], None]) -> None:
        self.visitors: list[Visitor] = []
        self.closed = False
        # Called for a reader whose turn it is to commit, while it is inside.
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
        """With messages, or with nothing, which leaves it inside as far as the group is concerned."""
        visitor.visits += 1
        visitor.in_call = False
        if found:
            visitor.in_hand = found
            visitor.left_at = 0 if visitor.delivery is None else visitor.delivery.at
            visitor.inside = False
            visitor.slow = self.closed or visitor.commit_due

    def ask_to_commit(self) -> None:
        """Have every reader's messages committed: now if it is inside, else when it comes."""
        for visitor in self.visitors:
            if visitor.inside:
                self.on_commit_due(visitor)
            else:
                visitor.commit_due = visitor.slow = True

    @property
    def is_empty(self) -> bool:
        """Whether nobody is at work outside."""
        return all(each.inside and not each.expired for each in self.visitors)

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Wait until every reader is inside, and let none leave before the block has ended."""
        assert not self.closed, "one at a time"
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
        """While a callback of the user runs, or something else that the group waits for, in this task."""
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
        """Whether whoever asks is a callback, which readers and the group wait for."""
        return bool(self._callers) and asyncio.current_task() in self._callers
