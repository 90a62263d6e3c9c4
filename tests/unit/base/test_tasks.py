"""Work that is done together ends together, and its error is seen as what it is."""

import asyncio

import pytest

from barnabas.base.tasks import together


def test_all_of_it_is_done() -> None:
    done: list[int] = []

    async def work(number: int) -> None:
        await asyncio.sleep(0)
        done.append(number)

    asyncio.run(together(work(1), work(2), work(3)))

    assert sorted(done) == [1, 2, 3]


def test_an_error_stops_the_others_and_keeps_its_type() -> None:
    stopped: list[bool] = []

    async def wait_forever() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(True)
            raise

    async def fail() -> None:
        await asyncio.sleep(0)
        raise OSError(5, "the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        asyncio.run(together(wait_forever(), fail()))

    assert stopped == [True]
