"""Patterns that are compiled and matched off the event loop, in turns."""

import asyncio

import pytest

from barnabas.base.executor import InlineExecutor
from barnabas.base.re2_patterns import NAMES_AT_ONCE, NotRe2
from barnabas.base.re2_work import WAITING_MAX, PatternWork, TooManyPatterns


def test_whole_names_match_in_their_order() -> None:
    async def story() -> None:
        work = PatternWork(InlineExecutor())
        names = [f"orders-{number}" for number in range(NAMES_AT_ONCE + 10)]

        pattern = await work.compile("orders-[0-9]*9")

        assert await work.match(pattern, [*names, "my-orders-9"]) == [
            one for one in names if one.endswith("9")
        ]

    asyncio.run(story())


def test_a_pattern_that_is_none_is_refused() -> None:
    async def story() -> None:
        work = PatternWork(InlineExecutor())

        with pytest.raises(NotRe2):
            await work.compile("(")

        assert work.waiting == 0

    asyncio.run(story())


def test_a_small_task_does_not_wait_for_the_end_of_a_large_one() -> None:
    async def story() -> None:
        work = PatternWork(InlineExecutor())
        pattern = await work.compile("orders-.*")
        ended: list[str] = []

        async def match(names: list[str], title: str) -> None:
            await work.match(pattern, names)
            ended.append(title)

        await asyncio.gather(match(["x"] * 20 * NAMES_AT_ONCE, "large"), match(["x"], "small"))

        assert ended == ["small", "large"]

    asyncio.run(story())


def test_more_than_a_limit_may_not_wait() -> None:
    async def story() -> None:
        work = PatternWork(InlineExecutor())
        pattern = await work.compile("x")
        waiting = [asyncio.create_task(work.match(pattern, ["x"])) for _ in range(WAITING_MAX)]
        await asyncio.sleep(0)

        with pytest.raises(TooManyPatterns, match="retry later"):
            await work.match(pattern, ["x"])

        assert await asyncio.gather(*waiting) == [["x"]] * WAITING_MAX
        assert await work.match(pattern, ["x"]) == ["x"]

    asyncio.run(story())
