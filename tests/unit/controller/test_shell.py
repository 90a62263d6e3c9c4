"""The controller on a real quorum of one voter, in a simulated world: responses follow the commit."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from barnabas.base.ids import Uuid
from barnabas.controller.bootstrap import bootstrap_records
from barnabas.controller.controller import Controller
from barnabas.controller.shell import REQUESTS_WAITING_MAX, ControllerShell
from barnabas.metadata.changes import Changes
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.snapshot import SnapshotSchedule
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.brokers import BrokerHeartbeatRequest
from barnabas.protocol.messages.topics import CreateTopicsRequest
from barnabas.protocol.stored.framing import Versioned
from barnabas.raft.driver import Quorum
from barnabas.raft.errors import LeadershipLost, NotLeader, RecordsTooLarge, TooMuchUncommitted
from barnabas.raft.facts import OffsetAndEpoch, Voter
from barnabas.raft.settings import QuorumSettings
from barnabas.sim.disk import SimDisk
from barnabas.sim.world import World
from support.clocks import ManualClock
from support.controllers import CLUSTER, NODE, creatable, registration, settings

NEVER = SnapshotSchedule(bytes_max=1 << 40, interval_ms=0)


class Node:
    """A controller, its quorum, and the published images."""

    def __init__(
        self, world: World, disk: SimDisk, *, snapshots: SnapshotSchedule = NEVER, **changes: Any
    ) -> None:
        self.world = world
        self.lost_power = False
        self.images: list[MetadataImage] = []
        self.deleted: list[str] = []
        self.controller = Controller(settings(**changes), Random(1), bootstrap_records())
        self.shell = ControllerShell(
            self.controller, world.clock, snapshots=snapshots, on_image=self._on_image
        )
        self.quorum = Quorum(
            fs=disk,
            clock=world.clock,
            executor=world.executor,
            rng=Random(2),
            directory="/data",
            node_id=NODE,
            voters=[Voter(NODE, "localhost", 9093)],
            settings=QuorumSettings(),
            cluster_id=CLUSTER,
            listener=self.shell,
        )
        self.shell.attach(self.quorum)

    def _on_image(self, image: MetadataImage, changes: Changes) -> None:
        self.images.append(image)
        self.deleted += [topic.name for topic in changes.topics_deleted.values()]

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Node"]:
        await self.quorum.open()
        tasks = [asyncio.ensure_future(self.quorum.run()), asyncio.ensure_future(self.shell.run())]
        try:
            while self.controller.epoch is None:
                await asyncio.sleep(0.001)
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # Nothing is closed at a power loss.
            if not self.lost_power:
                await self.quorum.close()

    async def ask(self, request: object) -> Any:
        return await self.shell.call(request)

    async def with_broker(self, broker: int = 1) -> "Node":
        answer = await self.ask(registration(broker))
        await self.ask(
            BrokerHeartbeatRequest(
                broker_id=broker,
                broker_epoch=answer.broker_epoch,
                current_metadata_offset=self.shell.image.offset,
            )
        )
        return self

    async def create(self, *names: str) -> list[int]:
        request = CreateTopicsRequest(topics=[creatable(name) for name in names])
        return [one.error_code for one in (await self.ask(request)).topics]


@pytest.fixture
def world() -> Iterable[World]:
    with World(3) as made:
        made.disk.make_directory("/data")
        yield made


def test_the_first_leader_writes_the_bootstrap_records_and_is_active(world: World) -> None:
    async def story() -> None:
        async with Node(world, world.disk).running() as node:
            await node.with_broker()

            assert node.shell.image.features["metadata.version"] == 30
            assert node.shell.leader.id == NODE
            assert not node.shell.image.brokers[1].fenced
            assert node.controller.image.topics == node.shell.image.topics

    world.run(story())


def test_a_response_waits_for_the_image_and_survives_a_restart(world: World) -> None:
    async def story() -> None:
        async with Node(world, world.disk).running() as node:
            await node.with_broker()
            assert await node.create("orders") == [0]
            assert "orders" in node.shell.image.topics
            before = node.shell.image

        async with Node(world, world.disk).running() as again:
            assert again.shell.image.topics == before.topics
            # Everything before the new epoch was one image, and the bootstrap records were not repeated.
            assert again.images[0].topics == before.topics
            assert again.controller.epoch == 2
            assert await again.create("orders") == [ErrorCode.TOPIC_ALREADY_EXISTS]

    world.run(story())


def test_acknowledged_changes_survive_a_power_loss(world: World) -> None:
    async def story() -> None:
        node = Node(world, world.disk)
        async with node.running():
            await node.with_broker()
            assert await node.create("orders") == [0]
            world.disk.crash()
            node.lost_power = True
        async with Node(world, world.disk).running() as again:
            assert "orders" in again.shell.image.topics

    world.run(story())


def test_requests_at_the_same_time_are_decided_one_after_the_other(world: World) -> None:
    async def story() -> None:
        async with Node(world, world.disk).running() as node:
            await node.with_broker()

            results = await asyncio.gather(*(node.create("orders") for _ in range(5)))

            assert sorted(results) == [[0], [36], [36], [36], [36]]
            assert len(node.shell.image.topics) == 1

    world.run(story())


def test_a_broker_without_heartbeats_is_fenced_and_no_op_records_are_written(world: World) -> None:
    async def story() -> None:
        async with Node(world, world.disk, session_timeout_ms=9_000).running() as node:
            await node.with_broker()
            await asyncio.sleep(8.9)
            assert not node.shell.image.brokers[1].fenced
            offset = node.shell.image.offset

            await asyncio.sleep(0.2)
            assert node.shell.image.brokers[1].fenced

            await asyncio.sleep(10)
            assert 19 <= node.shell.image.offset - offset <= 23

    world.run(story())


def test_after_a_restart_a_live_broker_gets_a_full_session_timeout(world: World) -> None:
    async def story() -> None:
        async with Node(world, world.disk, session_timeout_ms=9_000).running() as node:
            await node.with_broker(2)
            await asyncio.sleep(8)

        async with Node(world, world.disk, session_timeout_ms=9_000).running() as again:
            await asyncio.sleep(8.9)
            assert not again.shell.image.brokers[2].fenced
            await asyncio.sleep(0.2)
            assert again.shell.image.brokers[2].fenced

    world.run(story())


def test_after_a_restart_the_broker_of_the_same_node_registers_at_once(world: World) -> None:
    async def story() -> None:
        async with Node(world, world.disk, session_timeout_ms=9_000).running() as node:
            await node.with_broker(NODE)
            await node.with_broker(2)

        async with Node(world, world.disk, session_timeout_ms=9_000).running() as again:
            ours, other = registration(NODE), registration(2)
            ours.incarnation_id = other.incarnation_id = Uuid(b"another process!")

            assert (await again.ask(ours)).error_code == 0
            assert (await again.ask(other)).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION

    world.run(story())


def test_without_empty_records_a_new_session_is_still_watched(world: World) -> None:
    async def story() -> None:
        node = Node(world, world.disk, max_idle_interval_ms=0, session_timeout_ms=9_000)
        async with node.running():
            await asyncio.sleep(1)
            await node.with_broker()
            await asyncio.sleep(9.1)

            assert node.shell.image.brokers[1].fenced

    world.run(story())


def test_a_snapshot_is_written_when_it_is_due_and_is_enough_to_start_from(world: World) -> None:
    async def story() -> None:
        often = SnapshotSchedule(bytes_max=2_000, interval_ms=0)
        async with Node(world, world.disk, snapshots=often).running() as node:
            await node.with_broker()
            await node.create(*(f"topic-{number}" for number in range(20)))
            await asyncio.sleep(1)
            written = node.quorum.latest_snapshot
            assert written is not None

        async with Node(world, world.disk).running() as again:
            assert len(again.shell.image.topics) == 20
            assert again.images[0].offset == written.offset - 1

    world.run(story())


# With a quorum that fails


class FailingQuorum:
    """A quorum whose commits and failures the test controls."""

    def __init__(self) -> None:
        self.end_offset = 1
        self.bytes_since_snapshot = 0
        self.ms_since_snapshot = 0
        self.refuses: Exception | None = None
        self.appended: list[tuple[list[object], asyncio.Future[int]]] = []

    def append(self, epoch: int, records: Sequence[object]) -> "asyncio.Future[int]":
        if self.refuses is not None:
            raise self.refuses
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.appended.append((list(records), future))
        self.end_offset += len(records)
        return future

    def commit(self) -> None:
        for _, future in self.appended:
            if not future.done():
                future.set_result(self.end_offset - 1)

    async def write_snapshot(self, snapshot_id: OffsetAndEpoch, records: Iterable[object]) -> None:
        raise AssertionError("nothing is due")


def lost() -> LeadershipLost:
    return LeadershipLost(leader=2, epoch=5, asked_epoch=1)


def on_failing_quorum() -> tuple[ControllerShell, FailingQuorum]:
    shell = ControllerShell(
        Controller(settings(), Random(0), bootstrap_records()), ManualClock(), snapshots=NEVER
    )
    quorum = FailingQuorum()
    shell.attach(quorum)
    return shell, quorum


async def register(shell: ControllerShell) -> Any:
    return await shell.call(registration(1))


def test_a_standby_controller_refuses_requests(world: World) -> None:
    async def story() -> None:
        shell, _ = on_failing_quorum()
        assert (await register(shell)).error_code == ErrorCode.NOT_CONTROLLER

        shell.leader_changed(2, 5)
        (topic,) = (await shell.call(CreateTopicsRequest(topics=[creatable("a")]))).topics  # type: ignore[attr-defined]
        assert topic.error_code == ErrorCode.NOT_CONTROLLER
        assert topic.error_message == "The active controller appears to be node 2."

    world.run(story())


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotLeader(leader=2, epoch=5, asked_epoch=1), ErrorCode.NOT_CONTROLLER),
        (TooMuchUncommitted(waiting=2, limit=1), ErrorCode.THROTTLING_QUOTA_EXCEEDED),
        (RecordsTooLarge(size=2, limit=1), ErrorCode.POLICY_VIOLATION),
    ],
)
def test_a_failed_quorum_append_is_an_error_and_changes_nothing(
    world: World, error: Exception, code: ErrorCode
) -> None:
    async def story() -> None:
        shell, quorum = on_failing_quorum()
        shell.leader_changed(NODE, 1)
        before = shell.controller.image
        quorum.refuses = error

        assert (await register(shell)).error_code == code
        assert shell.controller.image is before

    world.run(story())


def test_changes_lost_with_the_leadership_are_not_acknowledged(world: World) -> None:
    async def story() -> None:
        shell, quorum = on_failing_quorum()
        shell.leader_changed(NODE, 1)
        waiting = asyncio.ensure_future(register(shell))
        await asyncio.sleep(0)
        assert 1 in shell.controller.image.brokers

        for _, future in quorum.appended:
            future.set_exception(lost())
        shell.leader_changed(2, 5)

        assert (await waiting).error_code == ErrorCode.NOT_CONTROLLER
        assert shell.controller.image is shell.image
        assert 1 not in shell.controller.image.brokers

    world.run(story())


def test_lost_changes_do_not_affect_a_later_leadership(world: World) -> None:
    async def story() -> None:
        shell, quorum = on_failing_quorum()
        quorum.end_offset = 20
        shell.load_snapshot(OffsetAndEpoch(20, 1), bootstrap_records())
        shell.leader_changed(NODE, 1)
        waiting = asyncio.ensure_future(register(shell))
        await asyncio.sleep(0)
        quorum.appended[-1][1].set_exception(lost())
        shell.leader_changed(2, 5)
        assert (await waiting).error_code == ErrorCode.NOT_CONTROLLER

        shell.leader_changed(NODE, 6)
        response: Any = await shell.call(CreateTopicsRequest(topics=[creatable("a b")]))

        assert response.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION

    world.run(story())


def test_a_response_without_changes_waits_for_its_image(world: World) -> None:
    async def story() -> None:
        shell, quorum = on_failing_quorum()
        shell.leader_changed(NODE, 1)
        request = CreateTopicsRequest(topics=[creatable("a b")])
        waiting = asyncio.ensure_future(shell.call(request))
        await asyncio.sleep(1)
        assert not waiting.done()

        quorum.commit()

        assert (await waiting).topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION  # type: ignore[attr-defined]

    world.run(story())


def test_a_request_waits_for_its_own_timeout(world: World) -> None:
    async def story() -> None:
        shell, _ = on_failing_quorum()
        shell.leader_changed(NODE, 1)
        start = world.clock.monotonic_ms()

        response: Any = await shell.call(CreateTopicsRequest(topics=[creatable("a")], timeout_ms=700))

        assert response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        assert world.clock.monotonic_ms() - start == 700
        other: Any = await shell.call(registration(1))
        assert other.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert world.clock.monotonic_ms() - start == 30_700

    world.run(story())


def test_requests_above_the_limit_get_a_retriable_error(world: World) -> None:
    async def story() -> None:
        shell, quorum = on_failing_quorum()
        shell.leader_changed(NODE, 1)
        waiting = [asyncio.ensure_future(register(shell)) for _ in range(REQUESTS_WAITING_MAX)]
        await asyncio.sleep(0.001)

        assert (await register(shell)).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED

        quorum.commit()
        assert {one.error_code for one in await asyncio.gather(*waiting)} == {0}
        assert (await register(shell)).error_code == ErrorCode.REQUEST_TIMED_OUT

    world.run(story())


def test_an_error_that_is_none_of_the_quorums_is_raised(world: World) -> None:
    async def story() -> None:
        shell, quorum = on_failing_quorum()
        shell.leader_changed(NODE, 1)
        waiting = asyncio.ensure_future(register(shell))
        await asyncio.sleep(0)
        quorum.appended[-1][1].set_exception(OSError("disk"))

        with pytest.raises(OSError, match="disk"):
            await waiting

    world.run(story())


def test_a_large_change_that_need_not_be_one_is_cut_into_batches(world: World) -> None:
    async def story() -> None:
        shell, quorum = on_failing_quorum()
        shell.leader_changed(NODE, 1)
        quorum.commit()
        await commit_while(shell, quorum, registration(1))
        beat = BrokerHeartbeatRequest(
            broker_id=1, broker_epoch=shell.controller.image.brokers[1].epoch, current_metadata_offset=1 << 40
        )
        await commit_while(shell, quorum, beat)
        for name in ("a", "b", "c"):
            request = CreateTopicsRequest(topics=[creatable(name, 5_000)])
            await commit_while(shell, quorum, request)
        before = len(quorum.appended)

        beat.want_fence = True
        await commit_while(shell, quorum, beat)

        assert [len(records) for records, _ in quorum.appended[before:]] == [10_000, 5_001]
        # Like Kafka, fencing is written in the oldest version that has the field.
        last = quorum.appended[-1][0][-1]
        assert isinstance(last, Versioned)
        assert last.version == 0
        assert shell.controller.image.brokers[1].fenced
        assert shell.controller.image.offset == quorum.end_offset - 1

    world.run(story())


async def commit_while(shell: ControllerShell, quorum: FailingQuorum, request: object) -> Any:
    waiting = asyncio.ensure_future(shell.call(request))
    await asyncio.sleep(0)
    quorum.commit()
    return await waiting
