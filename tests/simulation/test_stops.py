"""A broker that is stopped while clients have requests under way: what was begun is answered, and kept."""

import asyncio
from asyncio import IncompleteReadError

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import MetadataRequest
from barnabas.server.broker import FINISH_TIMEOUT_S, LEAVE_TIMEOUT_S, Broker
from barnabas.sim.world import World
from support.brokers import running
from support.stories import Client, Stopwatch, client_of, connect, say_goodbye, told
from support.wire.requests import fetched, produced, values_of

WRITERS = 5
LARGE = b"x" * 900_000


class Writer:
    """Sends produces without waiting for answers, and notes those that come."""

    def __init__(self, number: int, client: Client) -> None:
        self.client = client
        self.answered: list[bytes] = []
        self._number = number
        self._sent: list[bytes] = []

    async def write(self) -> None:
        try:
            while True:
                value = b"%d/%d" % (self._number, len(self._sent))
                self._sent.append(value)
                self.client.send_produce("orders", value, partition=self._number)
                await asyncio.sleep(0.0005)
        except ConnectionError:
            return

    async def listen(self) -> None:
        try:
            while True:
                _, answer = await self.client.answer()
                done = produced(answer)
                if done.error_code == 0:
                    assert done.base_offset == len(self.answered)
                    self.answered.append(self._sent[done.base_offset])
                else:
                    assert done.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        except (IncompleteReadError, ConnectionError):
            return


def test_a_stop_under_load_keeps_exactly_the_acknowledged_records() -> None:
    with World(5) as world:
        writers: list[Writer] = []

        async def live() -> None:
            async with running(world) as broker:
                async with client_of(broker) as admin:
                    await admin.create("orders", partitions=WRITERS)
                writers.extend([Writer(number, await connect(broker)) for number in range(WRITERS)])
                sending = [asyncio.ensure_future(one.write()) for one in writers]
                listening = [asyncio.ensure_future(one.listen()) for one in writers]
                await asyncio.sleep(0.5)
            await asyncio.gather(*listening)
            for task in sending:
                task.cancel()

        async def look() -> list[list[bytes | None]]:
            async with running(world) as broker, client_of(broker) as client:
                return [await client.values("orders", partition=number) for number in range(WRITERS)]

        world.run(live())
        found = world.run(look())

        assert found == [writer.answered for writer in writers]
        assert all(len(writer.answered) > 300 for writer in writers)


@pytest.mark.parametrize("leaves", [True, False], ids=["leaving", "at once"])
def test_a_stop_answers_waiting_fetches_with_available_records(leaves: bool) -> None:
    with World(1) as world:

        async def story() -> None:
            async with running(world, {"controlled.shutdown.enable": str(leaves).lower()}) as broker:
                client = await connect(broker)
                await client.create("orders")
                await client.produce("orders", b"one")
                client.send_fetch("orders", 0, max_wait_ms=600_000, min_bytes=1_000_000)
                await asyncio.sleep(1)
                watch = Stopwatch(world)
            assert watch.ms < 1_000
            data = fetched((await client.answer())[1])
            if leaves:
                # The leader has left by then; whoever is told so looks for the next one.
                assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            else:
                assert values_of(data) == [b"one"]
            assert await client.is_closed()
            say_goodbye(broker)

        world.run(story())


def test_an_answer_that_is_under_way_arrives_whole() -> None:
    with World(1) as world:
        world.network.delay_all((20, 50))

        async def story() -> None:
            async with running(world) as broker:
                client = await connect(broker)
                await client.create("orders")
                await client.produce("orders", LARGE)
                client.send_fetch("orders")
                client.writer.transport.pause_reading()  # type: ignore[attr-defined]
                await asyncio.sleep(1)
                reading = asyncio.ensure_future(read_late(client))
            assert values_of(fetched(await reading)) == [LARGE]
            say_goodbye(broker)

        async def read_late(client: Client) -> object:
            await asyncio.sleep(1)
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            return (await client.answer())[1]

        world.run(story())


def test_work_that_has_begun_is_finished_answered_and_kept() -> None:
    """A batch that is being recompressed when the stop comes."""
    with World(1) as world:

        async def live() -> None:
            async with running(world, {"controlled.shutdown.enable": "false"}) as broker:
                client = await connect(broker)
                await client.create("orders", compression_type="zstd")
                world.executor.delay_ms = (500, 500)
                client.send_produce("orders", b"begun")
                client.send_produce("orders", b"not begun")
                answering = asyncio.ensure_future(client.answer())
                await asyncio.sleep(0.1)
            assert produced((await answering)[1]).base_offset == 0
            assert await client.is_closed()
            say_goodbye(broker)

        async def look() -> list[bytes | None]:
            async with running(world) as broker, client_of(broker) as client:
                return await client.values("orders")

        world.run(live())
        assert world.run(look()) == [b"begun"]


def test_a_stop_does_not_wait_for_ever_for_a_client_that_takes_nothing() -> None:
    with World(1) as world:

        async def story() -> float:
            async with running(world) as broker:
                client = await connect(broker)
                await client.create("orders")
                await client.produce("orders", LARGE)
                client.reader._transport.pause_reading()  # type: ignore[attr-defined]
                for _ in range(10):
                    client.send_fetch("orders")
                await asyncio.sleep(1)
                watch = Stopwatch(world)
            client.close()
            return watch.ms

        assert world.run(story()) <= (LEAVE_TIMEOUT_S + FINISH_TIMEOUT_S + 1) * 1000


def test_a_topic_whose_creation_was_acknowledged_survives_a_stop() -> None:
    with World(2) as world:
        answers: list[int] = []

        async def live() -> None:
            async with running(world) as broker:
                clients = [await connect(broker) for _ in range(20)]
                making = [asyncio.ensure_future(make(client, f"t{n}")) for n, client in enumerate(clients)]
                await asyncio.sleep(0.001)
            await asyncio.gather(*making)

        async def make(client: Client, name: str) -> None:
            try:
                await client.create(name)
                answers.append(int(name[1:]))
            except (IncompleteReadError, ConnectionError):
                pass
            finally:
                client.close()

        async def look() -> set[str]:
            async with running(world) as broker, client_of(broker) as client:
                return {topic.name for topic in (await client.asked(MetadataRequest(topics=None), 12)).topics}

        world.run(live())
        found = world.run(look())

        assert answers, "at least one was in time"
        assert {f"t{number}" for number in answers} <= found


@told()
async def test_a_broker_that_stops_takes_no_new_connections(
    world: World, broker: Broker, client: Client
) -> None:
    await broker.stop()

    try:
        late = await connect(broker)
    except ConnectionRefusedError:
        return
    assert await late.is_closed()
