"""The group coordinator and its shards: loading, resigning, and reloading lost shards."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from barnabas.base.errors import BarnabasError
from barnabas.base.tasks import Tasks
from barnabas.coordinators.decision.outcome import Caller, Reply
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.coordinators.group.shard import GroupShard
from barnabas.coordinators.runtime.host import ShardHost, State
from barnabas.coordinators.runtime.shards import RELOAD_AFTER_MAX_S
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequestGroup,
)
from barnabas.replication.replicas import Replicas
from barnabas.server.coordination.groups import OFFSETS_TOPIC, GroupCoordinator
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.dynamic import DynamicSettings
from barnabas.sim.world import World, run_sim
from barnabas.storage.config import LogConfig
from support.broker_properties import combined
from support.group.consumer_stories import image_of, topic_id
from support.led_partitions import MemoryPartition
from support.log.managers import A, manager_on, new_disk

pytestmark = pytest.mark.kernel

CALLER = Caller("client", "/127.0.0.1", 8)
GROUP = "readers"
IMAGE = image_of({OFFSETS_TOPIC: 1, "orders": 3})


class SlowPartition(MemoryPartition):
    """Reading it takes a while, and may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.may_be_read = asyncio.Event()
        self.reads = 0
        self.read_errors = 0

    async def read(self, offset: int, bytes_max: int) -> tuple[bytes, int]:
        self.reads += 1
        await self.may_be_read.wait()
        if self.read_errors:
            self.read_errors -= 1
            raise BarnabasError("the disk is not there")
        return await super().read(offset, bytes_max)


class Place:
    """A coordinator, and what went wrong in its tasks."""

    def __init__(self, world: World, image: MetadataImage = IMAGE) -> None:
        self.crashes: list[BaseException] = []
        self.tasks = Tasks(self.crashes.append)
        logs = manager_on(new_disk(), A, executor=world.executor)
        self.coordinator = GroupCoordinator(
            clock=world.clock,
            rng=Random(1),
            executor=world.executor,
            tasks=self.tasks,
            settings=DynamicSettings(BrokerSettings.parse(combined(None))),
            logs=logs,
            replicas=Replicas(1, logs, LogConfig.parse),
            image=image,
        )

    @property
    def host(self) -> ShardHost[GroupShard]:
        host = self.coordinator.shards.host_of(GROUP)
        assert isinstance(host, ShardHost)
        return host

    def commits(self, offset: int, topic: str = "orders") -> object:
        one = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = OffsetCommitRequest(
            group_id=GROUP, topics=[OffsetCommitRequestTopic(name=topic, partitions=[one])]
        )
        reply = Reply(lambda code: code)
        self.host.ask(lambda shard, to, now: shard.offsets.commit(request, CALLER, to, now), reply)
        return reply.answer

    def offset(self, topic: str = "orders") -> int:
        found = self.host.shard.fetch(
            OffsetFetchRequestGroup(group_id=GROUP, topics=None), require_stable=False
        )
        return next((one.partitions[0].committed_offset for one in found.topics if one.name == topic), -1)

    def beats(self, *, epoch: int, **said: Any) -> None:
        assert self._beats(epoch=epoch, **said) is ErrorCode.NONE

    def asks_to_join(self, topics: list[str]) -> ErrorCode:
        return self._beats(
            epoch=0, rebalance_timeout_ms=60_000, subscribed_topic_names=topics, topic_partitions=[]
        )

    def _beats(self, *, epoch: int, **said: Any) -> ErrorCode:
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="m1", member_epoch=epoch, **said)
        reply = Reply(lambda code: code)
        caller = Caller(CALLER.client_id, CALLER.host, 1)
        self.host.ask(lambda shard, to, now: shard.consumer_heartbeat(request, caller, to, now), reply)
        assert isinstance(reply.answer, ConsumerGroupHeartbeatResponse)
        return ErrorCode(reply.answer.error_code)

    def refusal(self) -> ErrorCode | None:
        host = self.coordinator.shards.host_of(GROUP)
        return host if isinstance(host, ErrorCode) else None


def told(story: Callable[[Place], Awaitable[None]], image: MetadataImage = IMAGE) -> None:
    async def live(world: World) -> None:
        place = Place(world, image)
        await story(place)
        place.coordinator.shards.close()
        await place.tasks.close()
        assert place.crashes == []

    run_sim(live)


def written(*offsets: int, topic: str = "orders") -> SlowPartition:
    """A partition with commits in it, made by a coordinator that is gone."""
    partition = SlowPartition()

    async def before(world: World) -> None:
        place = Place(world)
        place.coordinator.shards.lead(0, partition)
        for offset in offsets:
            place.commits(offset, topic)
        place.coordinator.shards.close()

    run_sim(before)
    return partition


async def a_moment() -> None:
    await asyncio.sleep(0.1)


# Who is where


def test_a_group_led_by_another_broker_gets_not_coordinator() -> None:
    async def story(place: Place) -> None:
        assert place.refusal() is ErrorCode.NOT_COORDINATOR
        place.coordinator.shards.lead(0, MemoryPartition())
        assert place.refusal() is None
        place.coordinator.shards.resign(0)
        assert place.refusal() is ErrorCode.NOT_COORDINATOR

    told(story)


def test_without_the_topic_every_group_gets_not_coordinator() -> None:
    async def story(place: Place) -> None:
        place.coordinator.shards.lead(0, MemoryPartition())
        assert place.refusal() is ErrorCode.NOT_COORDINATOR
        place.coordinator.take_image(IMAGE, changed=frozenset({OFFSETS_TOPIC}), deleted=frozenset())
        assert place.refusal() is None

    told(story, image_of({"orders": 3}))


def test_a_stopping_coordinator_refuses_requests_and_partitions() -> None:
    async def story(place: Place) -> None:
        place.coordinator.shards.lead(0, MemoryPartition())
        place.coordinator.shards.close()
        place.coordinator.shards.lead(0, MemoryPartition())

        assert place.refusal() is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert place.coordinator.shards.hosts == {}

    told(story)


# Loading


def test_an_empty_partition_is_active_immediately() -> None:
    async def story(place: Place) -> None:
        place.coordinator.shards.lead(0, SlowPartition())
        assert place.coordinator.shards.hosts[0].state is State.ACTIVE

    told(story)


def test_requests_get_load_in_progress_while_loading() -> None:
    partition = written(1, 7)

    async def story(place: Place) -> None:
        place.coordinator.shards.lead(0, partition)
        await a_moment()
        assert place.refusal() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert place.coordinator.shards.active_hosts() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

        partition.may_be_read.set()
        await a_moment()
        assert place.offset() == 7
        assert place.coordinator.shards.active_hosts() == [place.coordinator.shards.hosts[0]]

    told(story)


def test_a_partition_resigned_while_loading_stays_resigned() -> None:
    partition = written(7)

    async def story(place: Place) -> None:
        place.coordinator.shards.lead(0, partition)
        await a_moment()
        host = place.coordinator.shards.hosts[0]
        place.coordinator.shards.resign(0)
        partition.may_be_read.set()
        await asyncio.sleep(5)

        assert place.coordinator.shards.hosts == {}
        assert host.state is State.LOST

    told(story)


def test_a_partition_that_is_led_again_while_it_is_loaded_is_served_once() -> None:
    partition = written(7)

    async def story(place: Place) -> None:
        place.coordinator.shards.lead(0, partition)
        await a_moment()
        first = place.coordinator.shards.hosts[0]
        place.coordinator.shards.lead(0, partition)
        partition.may_be_read.set()
        await a_moment()

        assert first.state is State.LOST
        assert place.coordinator.shards.hosts[0].state is State.ACTIVE
        assert place.offset() == 7

    told(story)


def test_settings_changed_while_loading_apply_afterwards() -> None:
    partition = written(7)

    async def story(place: Place) -> None:
        place.coordinator.shards.lead(0, partition)
        await a_moment()
        settings, image = GroupSettings(migration="disabled"), replace(IMAGE, offset=9)
        place.coordinator.take_settings(settings)
        place.coordinator.take_image(image, changed=frozenset({"orders"}), deleted=frozenset())
        partition.may_be_read.set()
        await a_moment()

        context = place.coordinator.shards.hosts[0].shard.context
        assert context.settings is settings
        assert context.image is image

    told(story)


def test_expressions_match_topics_created_during_a_load() -> None:
    partition = written()
    told(lambda place: _subscribes(place, partition))
    assert partition.batches

    async def story(place: Place) -> None:
        place.coordinator.shards.lead(0, partition)
        await a_moment()
        more = image_of({OFFSETS_TOPIC: 1, "orders": 3, "orders-eu": 2}, offset=2)
        place.coordinator.take_image(more, changed=frozenset({"orders-eu"}), deleted=frozenset())
        partition.may_be_read.set()
        # Expressions are not looked at again sooner.
        await asyncio.sleep(11)
        place.beats(epoch=2)

        group = place.host.shard.context.groups[GROUP]
        assert group.is_subscribed_to("orders-eu")

    told(story)


@pytest.mark.parametrize("made_anew", [False, True])
def test_offsets_of_a_topic_deleted_while_loading_are_removed(made_anew: bool) -> None:
    partition = written(7)

    async def story(place: Place) -> None:
        place.coordinator.shards.lead(0, partition)
        await a_moment()
        after = image_of({OFFSETS_TOPIC: 1}, offset=2)
        if made_anew:
            new = replace(IMAGE.topics["orders"], id=topic_id("made anew"))
            after = replace(
                after,
                topics={**after.topics, "orders": new},
                topics_by_id={**after.topics_by_id, new.id: new},
            )
        place.coordinator.take_image(after, changed=frozenset({"orders"}), deleted=frozenset({"orders"}))
        partition.may_be_read.set()
        await a_moment()

        assert place.offset() == -1

    told(story)


async def _subscribes(place: Place, partition: SlowPartition) -> None:
    """A member of a group of KIP-848, by an expression."""
    place.coordinator.shards.lead(0, partition)
    place.beats(
        epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[],
        subscribed_topic_regex="orders.*",
        topic_partitions=[],
    )


def test_an_unreadable_log_is_retried() -> None:
    partition = written(7)
    partition.read_errors = 2
    partition.may_be_read.set()

    async def story(place: Place) -> None:
        place.coordinator.shards.lead(0, partition)
        await a_moment()
        assert place.refusal() is ErrorCode.NOT_COORDINATOR
        await asyncio.sleep(3)

        assert place.offset() == 7
        assert partition.reads == 3

    told(story)


def test_retries_of_an_unreadable_log_back_off() -> None:
    partition = written(7)
    partition.read_errors = 1_000
    partition.may_be_read.set()

    async def story(place: Place) -> None:
        place.coordinator.shards.lead(0, partition)
        await asyncio.sleep(300)
        assert 8 < partition.reads < 20

        partition.read_errors = 0
        await asyncio.sleep(RELOAD_AFTER_MAX_S + 1)
        assert place.offset() == 7

    told(story)


def test_a_corrupt_log_is_not_served() -> None:
    partition = written(7)
    partition.batches.append(b"\0" * 8 + b"\0\0\0\x40" + b"\xff" * 64)
    partition.may_be_read.set()

    async def story(place: Place) -> None:
        place.coordinator.shards.lead(0, partition)
        await a_moment()

        assert place.refusal() is ErrorCode.NOT_COORDINATOR

    told(story)


# Losing a shard


def test_a_shard_with_a_failed_write_is_reloaded_from_its_log() -> None:
    partition = written(7)
    partition.may_be_read.set()

    async def story(place: Place) -> None:
        place.coordinator.shards.lead(0, partition)
        await a_moment()
        partition.refusal = ErrorCode.NOT_COORDINATOR
        assert place.commits(8) is ErrorCode.NOT_COORDINATOR
        assert place.refusal() is ErrorCode.NOT_COORDINATOR

        partition.refusal = None
        await asyncio.sleep(2)

        assert place.offset() == 7
        assert partition.reads == 2

    told(story)


def test_a_lost_and_resigned_shard_is_not_reloaded() -> None:
    async def story(place: Place) -> None:
        partition = SlowPartition()
        place.coordinator.shards.lead(0, partition)
        partition.refusal = ErrorCode.NOT_COORDINATOR
        place.commits(8)
        place.coordinator.shards.resign(0)

        await asyncio.sleep(5)

        assert place.coordinator.shards.hosts == {}

    told(story)


def test_a_bug_loses_the_shard_and_the_reloaded_one_serves() -> None:
    async def story(place: Place) -> None:
        place.coordinator.shards.lead(0, MemoryPartition())
        place.commits(7)
        host = place.host

        with pytest.raises(ZeroDivisionError):
            host.ask(lambda *_: 1 // 0, Reply(lambda code: code))
        assert place.refusal() is ErrorCode.NOT_COORDINATOR

        await asyncio.sleep(2)
        assert place.offset() == 7

    told(story)


# What changes around them


def test_offsets_are_removed_with_their_topic() -> None:
    async def story(place: Place) -> None:
        place.coordinator.shards.lead(0, MemoryPartition())
        place.commits(7)
        place.coordinator.take_image(
            image_of({OFFSETS_TOPIC: 1}, offset=2), changed=frozenset(), deleted=frozenset({"orders"})
        )

        assert place.offset() == -1

    told(story)


def test_a_write_above_the_topics_own_limit_is_refused_and_keeps_the_shard() -> None:
    async def story(place: Place) -> None:
        place.coordinator.shards.lead(0, MemoryPartition(batch_bytes_max=5_000))

        code = place.asks_to_join([f"{number:0100}" for number in range(60)])

        assert code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert place.host.state is State.ACTIVE
        assert place.asks_to_join(["orders"]) is ErrorCode.NONE

    told(story)


def test_settings_apply_to_current_and_future_shards() -> None:
    async def story(place: Place) -> None:
        settings = GroupSettings(offset_metadata_bytes_max=1)
        place.coordinator.shards.lead(0, MemoryPartition())
        place.coordinator.take_settings(settings)
        place.coordinator.shards.lead(1, MemoryPartition())

        assert [host.shard.context.settings for host in place.coordinator.shards.hosts.values()] == [
            settings
        ] * 2

    told(story)
