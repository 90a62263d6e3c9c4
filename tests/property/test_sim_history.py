"""The same seed gives the same bytes at the same times, another seed gives others."""

import asyncio
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sim.world import World

SIZES = st.lists(st.integers(1, 300_000), min_size=1, max_size=5)
CLIENTS = st.lists(SIZES, min_size=1, max_size=4)
FAULTS = st.lists(
    st.tuples(st.sampled_from(["cut", "heal", "reset", "slow"]), st.floats(0, 0.01)), max_size=4
)
HOSTS = ("a", "b")


class Plan(NamedTuple):
    """The events of a run: the data of each client, and the network faults with their times."""

    clients: list[list[int]]
    faults: list[tuple[str, float]]


PLANS = st.builds(Plan, CLIENTS, FAULTS)


async def run_plan(world: World, plan: Plan) -> list[tuple[Any, ...]]:
    """Everything that a program can observe, with its time."""
    seen: list[tuple[Any, ...]] = []

    def note(*what: Any) -> None:
        seen.append((world.loop.time_ns(), *what))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(100_000):
                note("served", len(data))
                size = await world.executor.run(lambda data=data: len(data))
                writer.write(size.to_bytes(4))
                await writer.drain()
        except OSError as error:
            note("server", repr(error))
        finally:
            writer.close()

    async def ask(number: int, sizes: list[int]) -> None:
        try:
            reader, writer = await asyncio.open_connection("b", 9092)
            for size in sizes:
                writer.write(bytes(size))
                done = 0
                while done < size:
                    done += int.from_bytes(await reader.readexactly(4))
                note("answered", number, size)
            writer.close()
            await writer.wait_closed()
        except (OSError, EOFError) as error:
            note("client", number, repr(error))

    async with await asyncio.start_server(serve, "b", 9092):
        for fault, at_s in plan.faults:
            world.loop.call_later(at_s, befall, world, fault)
        world.loop.call_later(1, world.network.heal)
        with world.on("a"):
            await asyncio.gather(*(ask(number, sizes) for number, sizes in enumerate(plan.clients)))
    return seen


def befall(world: World, fault: str) -> None:
    match fault:
        case "cut":
            world.network.cut(*HOSTS)
        case "heal":
            world.network.heal()
        case "reset":
            world.network.reset(*HOSTS)
        case "slow":
            world.network.delay(*HOSTS, (1, 20))


def history(seed: int, plan: Plan) -> tuple[Any, ...]:
    with World(seed, hosts=HOSTS) as world:
        seen = world.run(run_plan(world, plan), until_ms=1e8)
        return seen, list(world.network.history), world.loop.turns


@given(st.integers(0, 2**32), PLANS)
@settings(max_examples=60)
def test_the_same_seed_gives_the_same_history(seed: int, plan: Plan) -> None:
    assert history(seed, plan) == history(seed, plan)


@given(st.integers(0, 2**32), CLIENTS)
@settings(max_examples=30)
def test_another_seed_gives_another_history(seed: int, clients: list[list[int]]) -> None:
    plan = Plan(clients, [])

    assert history(seed, plan)[0] != history(seed + 1, plan)[0]


def test_another_process_gives_the_same_history() -> None:
    plan = Plan([[100_000, 5], [7], [300_000]], [("slow", 0.0005), ("cut", 0.002)])
    code = (
        "from property.test_sim_history import *; from hashlib import sha256;"
        f"print(sha256(repr(history(1, {plan!r})).encode()).hexdigest())"
    )
    tests = str(Path(__file__).parents[1])
    prints = set()
    for hash_seed in ("1", "2"):
        path = os.pathsep.join([tests, *sys.path])
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
        prints.add(done.stdout)

    assert prints == {f"{sha256(repr(history(1, plan)).encode()).hexdigest()}\n".encode()}
