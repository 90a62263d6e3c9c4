"""Who is called when a turn of the loop ends."""

import asyncio
from collections.abc import Callable

import pytest

from barnabas.server.network.turn import Turn

pytestmark = pytest.mark.kernel


class Caller:
    """A sender that does as it is told."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.send_now = act


def test_all_are_called_once_in_order_and_not_before_the_turn_ends() -> None:
    async def story() -> None:
        turn, called = Turn(), list[str]()
        for name in ("first", "second", "third"):
            turn.add(Caller(lambda name=name: called.append(name)))  # type: ignore[misc]

        assert called == []
        await asyncio.sleep(0)
        assert called == ["first", "second", "third"]
        await asyncio.sleep(0)
        assert called == ["first", "second", "third"]

    asyncio.run(story())


def test_who_comes_while_it_ends_is_of_the_next() -> None:
    async def story() -> None:
        turn, calls = Turn(), 0

        def call_again() -> None:
            nonlocal calls
            calls += 1
            turn.add(again)

        again = Caller(call_again)
        turn.add(again)

        for ended in range(3):
            assert calls == ended
            await asyncio.sleep(0)

    asyncio.run(story())


def test_one_that_fails_does_not_take_the_turn_of_the_others() -> None:
    def fail() -> None:
        raise ValueError("a mistake")

    async def story() -> None:
        turn, called, seen = Turn(), list[str](), list[object]()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(context["exception"]))
        turn.add(Caller(fail))
        turn.add(Caller(lambda: called.append("other")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

        assert called == ["other"]
        with pytest.raises(ValueError, match="a mistake"):
            raise seen[0]  # type: ignore[misc]

    asyncio.run(story())
