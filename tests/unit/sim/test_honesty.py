"""Protocols behave the same on simulated connections and on real sockets."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from barnabas.sim.world import World
from support.wire.socket_stories import STORIES, Seen

SEEDS = range(10)


@pytest.mark.parametrize("real_loop", [asyncio.SelectorEventLoop, uvloop.new_event_loop])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_protocols_see_the_same_as_on_real_sockets(
    story: Callable[[], Coroutine[Any, Any, Seen]], real_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    with asyncio.Runner(loop_factory=real_loop) as runner:
        real = runner.run(story())

    for seed in SEEDS:
        with World(seed) as world:
            assert world.run(story()) == real
