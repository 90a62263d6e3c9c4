"""Machines of a simulated world: their programs die, pause and restart without a word to the program."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from barnabas.sim.node import Node
from barnabas.sim.world import World

PORT = 9000


class Diary:
    """Lines that programs write; it outlives them."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def program(self, work: Callable[[Node], Awaitable[None]]) -> Callable[[Node], Awaitable[None]]:
        async def main(node: Node) -> None:
            self.lines.append("began")
            try:
                await work(node)
                self.lines.append("done")
            except BaseException as error:
                self.lines.append(type(error).__name__)
                raise
            finally:
                self.lines.append("finally")

        return main


async def sleep(node: Node) -> None:
    await asyncio.sleep(3)


async def wait_for_work_on_the_executor(node: Node) -> None:
    for _ in range(10_000):
        await node.executor.run(lambda: None)


async def wait_in_tasks(node: Node) -> None:
    async def forever() -> None:
        await asyncio.get_running_loop().create_future()

    async with asyncio.TaskGroup() as group:
        group.create_task(forever())
        group.create_task(forever())


async def wait_in_a_generator(node: Node) -> None:
    async def ticks():  # type: ignore[no-untyped-def]
        try:
            while True:
                await asyncio.sleep(0.01)
                yield 1
        finally:
            node.world.history.event(node.name, "generator ended")

    async for _ in ticks():
        pass


@pytest.mark.parametrize("end", [Node.kill, Node.power_off])
@pytest.mark.parametrize("work", [sleep, wait_for_work_on_the_executor, wait_in_tasks, wait_in_a_generator])
def test_no_code_of_a_killed_program_runs(
    end: Callable[[Node], None], work: Callable[[Node], Awaitable[None]]
) -> None:
    diary = Diary()
    with World() as world:
        node = world.add_node("n1")
        node.start(diary.program(work))
        world.run(asyncio.sleep(1))
        end(node)
        world.run(asyncio.sleep(10))
        assert (diary.lines, node.state) == (["began"], "off")
        assert [row.what for row in world.history.rows] == [
            "started",
            "killed" if end is Node.kill else "lost power",
        ]
    # The world has ended, and nothing can notice.


def test_a_program_that_kills_its_own_machine_ends_at_its_next_await() -> None:
    diary = Diary()

    async def kill_itself(node: Node) -> None:
        node.kill()
        diary.lines.append("still here")
        await asyncio.sleep(0)
        diary.lines.append("too late")

    with World() as world:
        node = world.add_node("n1")
        node.start(diary.program(kill_itself))
        world.run(asyncio.sleep(1))
        assert diary.lines == ["began", "still here"]


async def echo(node: Node) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(b"%d: %s" % (node.incarnations, line))
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, node.name, PORT) as server:
        await server.serve_forever()


async def ask(text: bytes, *, within_s: float = 5) -> bytes:
    async with asyncio.timeout(within_s):
        reader, writer = await asyncio.open_connection("server", PORT)
        writer.write(text + b"\n")
        answer = await reader.readline()
        writer.close()
        return answer


def test_a_restarted_server_has_its_port_again() -> None:
    with World(hosts=["client"]) as world:
        server = world.add_node("server")
        server.start(echo)
        with world.on("client"):
            world.run(asyncio.sleep(0.1))
            assert world.run(ask(b"one")) == b"1: one\n"
            server.kill()
            with pytest.raises(OSError, match="Connect call failed"):
                world.run(ask(b"two"))
            server.start(echo)
            world.run(asyncio.sleep(0.1))
            assert world.run(ask(b"three")) == b"2: three\n"


@pytest.mark.parametrize(
    ("end", "seen"), [(Node.kill, b""), (Node.power_off, None)], ids=["killed", "without power"]
)
def test_peers_see_the_end_of_a_process_but_not_that_of_a_machine(
    end: Callable[[Node], None], seen: bytes | None
) -> None:
    async def talk(server: Node) -> bytes | None:
        reader, writer = await asyncio.open_connection("server", PORT)
        writer.write(b"one\n")
        await reader.readline()
        end(server)
        try:
            return await asyncio.wait_for(reader.readline(), 60)
        except TimeoutError:
            return None
        finally:
            writer.close()

    with World(hosts=["client"]) as world:
        server = world.add_node("server")
        server.start(echo)
        with world.on("client"):
            world.run(asyncio.sleep(0.1))
            assert world.run(talk(server)) == seen


def test_a_half_open_connection_is_reset_by_the_next_incarnation() -> None:
    async def talk(server: Node) -> None:
        reader, writer = await asyncio.open_connection("server", PORT)
        writer.write(b"one\n")
        await reader.readline()
        server.power_off()
        writer.write(b"two\n")
        await asyncio.sleep(1)
        server.start(echo)
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.readline(), 300)

    with World(hosts=["client"]) as world:
        server = world.add_node("server")
        server.start(echo)
        with world.on("client"):
            world.run(asyncio.sleep(0.1))
            world.run(talk(server))


def test_a_paused_program_continues_after_its_resumption() -> None:
    ticks: list[float] = []

    async def tick(node: Node) -> None:
        while True:
            ticks.append(node.clock.monotonic_ms() / 1000)
            await asyncio.sleep(1)

    with World() as world:
        node = world.add_node("n1")
        node.start(tick)
        world.run(asyncio.sleep(2.5))
        node.pause()
        world.run(asyncio.sleep(10))
        assert len(ticks) == 3
        node.resume()
        world.run(asyncio.sleep(0.1))
    assert ticks[3] == pytest.approx(12.5, abs=0.1)


def test_a_suspended_machine_does_not_notice_but_its_date_jumps() -> None:
    with World() as world:
        node = world.add_node("n1")
        node.start(sleep)
        world.run(asyncio.sleep(1))
        before_ms, date_ms = node.clock.monotonic_ms(), node.clock.now_ms()
        node.pause(suspended=True)
        world.run(asyncio.sleep(10))
        assert node.clock.monotonic_ms() == before_ms
        node.resume()
        assert node.clock.now_ms() - date_ms == 10_000
        world.run(asyncio.sleep(1.5))
        assert node.state == "running"
        world.run(asyncio.sleep(1))
        assert node.state == "off"


def test_every_machine_has_its_own_pace() -> None:
    done: dict[str, float] = {}

    def program(world: World) -> Callable[[Node], Awaitable[None]]:
        async def main(node: Node) -> None:
            await asyncio.sleep(10)
            done[node.name] = world.loop.time_ns() / 1e9

        return main

    with World() as world:
        slow, fast = world.add_node("slow"), world.add_node("fast")
        slow.drift(-500_000)
        fast.drift(1_000_000)
        slow.start(program(world))
        fast.start(program(world))
        world.run(asyncio.sleep(30))
    assert done == {"slow": pytest.approx(20, abs=0.1), "fast": pytest.approx(5, abs=0.1)}


def test_a_failure_of_a_machine_does_not_fail_the_simulation() -> None:
    async def fail(node: Node) -> None:
        async def in_a_task() -> None:
            raise ValueError("in a task")

        task = asyncio.get_running_loop().create_task(in_a_task())
        await asyncio.sleep(0.1)
        del task
        asyncio.get_running_loop().call_soon(lambda: 1 // 0)
        await asyncio.sleep(0.1)
        raise KeyError("at the end")

    with World() as world:
        node = world.add_node("n1")
        node.start(fail)
        world.run(asyncio.sleep(1))
        world.run(asyncio.sleep(1))
        assert sorted(type(failure.error).__name__ for failure in node.failures) == [
            "KeyError",
            "ValueError",
            "ZeroDivisionError",
        ]
        assert node.state == "off"


def test_only_a_power_loss_loses_unsynced_writes() -> None:
    async def write(node: Node) -> None:
        node.disk.lock("/lock")
        file = node.disk.open("/data", create=True)
        node.disk.sync_directory("/")
        file.write(0, [b"synced"])
        file.sync()
        file.write(6, [b", not synced by %d" % node.incarnations])
        await asyncio.sleep(100)

    lost = 0
    for seed in range(20):
        with World(seed) as world:
            node = world.add_node("n1")
            node.start(write)
            world.run(asyncio.sleep(1))
            node.kill()
            assert node.disk.read("/data") == b"synced, not synced by 1"
            node.start(write)
            world.run(asyncio.sleep(1))
            node.power_off()
            left = node.disk.read("/data")
            assert left.startswith(b"synced")
            lost += left != b"synced, not synced by 2"
    assert lost


def test_processes_take_turns_but_each_keeps_its_order() -> None:
    def story(seed: int) -> list[tuple[str, int]]:
        order: list[tuple[str, int]] = []

        async def count(node: Node) -> None:
            loop = asyncio.get_running_loop()
            for number in range(20):
                loop.call_soon(order.append, (node.name, number))
            await asyncio.sleep(1)

        with World(seed) as world:
            for name in ("a", "b", "c"):
                world.add_node(name).start(count)
            world.run(asyncio.sleep(1))
        return order

    orders = [story(seed) for seed in range(3)]
    for order in orders:
        for name in ("a", "b", "c"):
            assert [number for one, number in order if one == name] == list(range(20))
    assert len({tuple(order) for order in orders}) == 3
    assert story(1) == orders[1]


def test_a_machine_can_restart_with_an_older_or_an_empty_disk() -> None:
    async def write(node: Node) -> None:
        file = node.disk.open("/data", create=True)
        node.disk.sync_directory("/")
        file.write(0, [b"by %d" % node.incarnations])
        file.sync()

    with World() as world:
        node = world.add_node("n1")
        node.start(write)
        world.run(asyncio.sleep(1))
        node.back_up_disk()
        node.start(write)
        world.run(asyncio.sleep(1))
        assert node.disk.read("/data") == b"by 2"

        node.restore_disk()
        assert node.disk.read("/data") == b"by 1"

        node.replace_disk()
        assert node.disk.tree() == {}
        node.start(sleep)
        with pytest.raises(ValueError, match="only be replaced when it is off"):
            node.replace_disk()
