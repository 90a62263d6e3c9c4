"""Long requests take turns: one slice per loop iteration."""

import asyncio
from collections.abc import Generator

import pytest

from barnabas.server.requests.long_requests import AT_ONCE_MAX, ClientGone, LongRequests


def steps(log: list[str], name: str, count: int) -> Generator[None, None, str]:
    for number in range(count):
        log.append(f"{name}{number}")
        yield
    return name


def test_two_requests_work_in_turns_and_others_in_between() -> None:
    async def story() -> None:
        turns = LongRequests()
        log: list[str] = []

        async def other() -> None:
            for _ in range(6):
                log.append("-")
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            first = group.create_task(turns.run(steps(log, "a", 3)))
            second = group.create_task(turns.run(steps(log, "b", 3)))
            group.create_task(other())

        assert (first.result(), second.result()) == ("a", "b")
        slices = "".join(log).replace("a0b0", "").split("-")
        # The first step of each is taken where it starts. After that one step comes at a time.
        assert all(len(some) <= 2 for some in slices), log

    asyncio.run(story())


def test_the_number_of_long_requests_in_progress_is_limited() -> None:
    async def story() -> None:
        turns = LongRequests()
        inside = most = 0
        done = []

        async def one(number: int) -> None:
            nonlocal inside, most
            async with turns:
                inside += 1
                most = max(most, inside)
                for _ in range(3):
                    await turns.pause()
                inside -= 1
            done.append(number)

        await asyncio.gather(*(one(number) for number in range(3 * AT_ONCE_MAX)))

        assert most == AT_ONCE_MAX
        assert done == list(range(3 * AT_ONCE_MAX))
        assert (turns.waiting, turns.begun) == (0, 3 * AT_ONCE_MAX)

    asyncio.run(story())


def test_work_for_a_disconnected_client_ends() -> None:
    log: list[str] = []

    with pytest.raises(ClientGone):
        asyncio.run(LongRequests().run(steps(log, "a", 10), lambda: len(log) == 2))

    assert log == ["a0", "a1"]


def test_a_cancelled_request_does_not_block_the_others() -> None:
    async def story() -> None:
        turns = LongRequests()
        log: list[str] = []
        first = asyncio.create_task(turns.run(steps(log, "a", 100)))
        second = asyncio.create_task(turns.run(steps(log, "b", 5)))
        await asyncio.sleep(0)
        first.cancel()

        assert await second == "b"
        assert log.count("a0") == 1

    asyncio.run(story())


def test_items_are_collected_in_slices() -> None:
    assert asyncio.run(LongRequests().collect(iter(range(3_000)))) == list(range(3_000))
