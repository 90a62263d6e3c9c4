"""Many who want the same thing written share the writing."""

import asyncio

import pytest

from barnabas.base.tasks import Coalesced


def test_calls_during_a_run_share_the_next_one() -> None:
    runs: list[int] = []

    async def story() -> None:
        gate = asyncio.Event()

        async def write() -> None:
            runs.append(len(runs))
            await gate.wait()

        writer = Coalesced(write)
        first = asyncio.create_task(writer.run())
        await asyncio.sleep(0)
        late = [asyncio.create_task(writer.run()) for _ in range(10)]
        await asyncio.sleep(0)
        assert runs == [0]

        gate.set()
        await asyncio.gather(first, *late)

    asyncio.run(story())

    # One run that had begun when they came says nothing about what they changed; one more serves all.
    assert runs == [0, 1]


def test_an_error_reaches_the_one_it_is_for_and_the_next_tries_again() -> None:
    outcomes = iter([OSError(5, "no"), None])

    async def write() -> None:
        outcome = next(outcomes)
        if outcome is not None:
            raise outcome

    async def story() -> None:
        writer = Coalesced(write)
        with pytest.raises(OSError, match="no"):
            await writer.run()
        await writer.run()

    asyncio.run(story())

    assert next(outcomes, "all were asked for") == "all were asked for"
