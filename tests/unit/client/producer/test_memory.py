"""buffer.memory: memory is granted in order, and released whatever happens to the waiters."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.client.deadline import Deadline
from barnabas.client.errors import Closed
from barnabas.client.producer.errors import BufferFull
from barnabas.client.producer.memory import BufferMemory
from barnabas.sim.world import run_sim


def simulated(story: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def test() -> None:
        run_sim(lambda world: story())

    test.__name__ = story.__name__
    return test


def memory_of(limit: int) -> BufferMemory:
    return BufferMemory(limit, on_full=lambda: None)


async def take(memory: BufferMemory, size: int) -> "asyncio.Task[None]":
    """Start take() in a task, and let it run until it waits."""
    task = asyncio.ensure_future(memory.take(size, Deadline(60_000)))
    await asyncio.sleep(0)
    return task


@simulated
async def test_waiters_are_served_in_order() -> None:
    memory = memory_of(100)
    await memory.take(80, Deadline(1000))
    large = await take(memory, 50)
    small = await take(memory, 10)

    assert not memory.has_room(1), "memory is free, but others wait for it"
    assert not small.done()
    memory.release(80)
    await asyncio.gather(large, small)
    assert memory.used == 60


@simulated
async def test_the_first_waiter_triggers_on_full() -> None:
    full: list[int] = []
    memory = BufferMemory(100, on_full=lambda: full.append(memory.used))
    await memory.take(100, Deadline(1000))
    waiting = [await take(memory, 10), await take(memory, 10)]

    assert full == [100]
    memory.release(100)
    await asyncio.gather(*waiting)
    assert memory.used == 20


@simulated
async def test_a_cancelled_waiter_reserves_nothing_and_lets_the_next_one_in() -> None:
    memory = memory_of(100)
    await memory.take(80, Deadline(1000))
    large = await take(memory, 50)
    small = await take(memory, 20)

    large.cancel()
    await asyncio.wait([large])
    await small
    assert memory.used == 100
    assert not memory.waiters


@simulated
async def test_a_waiter_cancelled_while_memory_is_granted_releases_it() -> None:
    memory = memory_of(100)
    await memory.take(80, Deadline(1000))
    one = await take(memory, 50)
    other = await take(memory, 60)

    memory.release(80)
    assert memory.used == 50
    one.cancel()
    await asyncio.wait([one])
    await other
    assert memory.used == 60


@simulated
async def test_a_waiter_gets_buffer_full_at_its_deadline_and_reserves_nothing() -> None:
    memory = memory_of(100)
    await memory.take(80, Deadline(1000))
    with pytest.raises(BufferFull) as full:
        await memory.take(50, Deadline(200))

    assert (full.value.needed, full.value.used, full.value.limit) == (50, 80, 100)
    assert full.value.waited_ms == 200
    assert memory.used == 80
    assert not memory.waiters


@simulated
async def test_refused_waiters_reserve_nothing() -> None:
    memory = memory_of(100)
    await memory.take(80, Deadline(1000))
    waiting = await take(memory, 50)

    memory.refuse_waiters(Closed)
    with pytest.raises(Closed):
        await waiting
    assert memory.used == 80
