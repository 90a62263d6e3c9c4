"""A producer that is cancelled at any step leaves nothing behind: no task, no connection, no memory."""

import asyncio
from collections.abc import Coroutine, Generator
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from barnabas.client.producer.producer import Producer
from barnabas.sim.world import World
from support.brokers import running
from support.our_client.worlds import nothing_left, producer_of
from support.scale import seeds
from support.stories import client_of

# More than the longest of the stories has steps.
STEPS_MAX = 400


class Stepped:
    """Runs a coroutine, and throws CancelledError into it at its k-th wait."""

    def __init__(self, work: Coroutine[Any, Any, None], cancel_at: int) -> None:
        self._work = work
        self._cancel_at = cancel_at
        self.steps = 0

    def __await__(self) -> Generator[Any, Any, None]:
        waits = self._work.__await__()
        result: Any = None
        try:
            wanted = waits.send(None)
            while True:
                self.steps += 1
                try:
                    if self.steps == self._cancel_at:
                        task = asyncio.current_task()
                        assert task is not None
                        task.cancel()
                    result = yield wanted
                except BaseException as error:
                    wanted = waits.throw(error)
                else:
                    wanted = waits.send(result)
        except StopIteration:
            return


async def use(producer: Producer) -> None:
    """Everything that can be waited for: metadata, room, deliveries, a table, a flush, the end."""
    async with producer:
        first = await producer.send("orders", b"a" * 300)
        await producer.send("orders", b"b" * 300)
        await producer.send("orders", b"c" * 300)
        await first
        await producer.send_table("orders", pa.table({"value": [b"d" * 100] * 6}))
        await producer.flush()
        await producer.send("orders", b"e")


def play(seed: int, cancel_at: int = 0, cancel_after_ms: float | None = None) -> int:
    """Cancel at a step or after a time; how many steps there were before the end."""
    with World(seed) as world:

        async def story() -> int:
            async with running(world) as broker:
                async with client_of(broker) as client:
                    await client.create("orders", partitions=2)
                before = set(asyncio.all_tasks())
                producer = producer_of(world, buffer_memory=700, linger_ms=10)
                stepped = Stepped(use(producer), cancel_at)

                async def run() -> None:
                    await stepped

                task = asyncio.ensure_future(run())
                await asyncio.wait(
                    [task], timeout=None if cancel_after_ms is None else cancel_after_ms / 1000
                )
                task.cancel()
                await asyncio.wait([task])
                if not task.cancelled():
                    task.result()
                nothing_left(producer, before)
                # A cancelled producer is a closed one, and closing it again is no harm.
                await producer.close()
                nothing_left(producer, before)
                return stepped.steps

        return world.run(story())


@pytest.mark.parametrize("seed", [1, 2])
def test_cancelled_at_any_step_nothing_is_left(seed: int) -> None:
    steps = play(seed)
    assert 8 <= steps < STEPS_MAX
    for step in range(1, steps + 1):
        play(seed, cancel_at=step)


@pytest.mark.parametrize("seed", seeds(40))
def test_cancelled_at_any_moment_nothing_is_left(seed: int) -> None:
    # All of it takes about 30 ms.
    play(seed, cancel_after_ms=Random(seed).uniform(0, 35))
