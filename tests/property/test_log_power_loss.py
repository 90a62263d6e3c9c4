"""After a power loss at any disk operation, a log has all flushed records and stays usable.

A fixed scenario runs once to count its disk operations, and then once for each of them, with a power loss
before, during or after the operation. Which unsynced writes survive is random, so each case runs with
several seeds.

BARNABAS_SEEDS=20 pytest tests/property/test_log_power_loss.py     runs more seeds
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest

from barnabas.sim.disk import PowerLoss, SimDisk
from barnabas.storage.config import LogConfig
from support.log.fault_world import T0, U0, V0, A, Broker, replayable, topic_id
from support.log.world import DELETE_RETENTION_MS, TOPIC_ID, TP, World
from support.scale import seeds

pytestmark = pytest.mark.kernel


def life_of(seed: int) -> int:
    """The seed of the scenario itself. It does not depend on where the power is lost; two seeds share it."""
    return FIRST_LIFE + seed // 2


FIRST_LIFE = 20

ONE_LOG = """
    append append_transactional append flush checkpoint append_idempotent roll append end_transaction append
    new_epoch append_transactional append truncate append roll append_idempotent flush delete_records
    checkpoint append wait end_transaction flush wait retain append append_transactional reopen append
    end_transaction flush checkpoint truncate append flush checkpoint append
"""

COMPACTED_LOG = """
    append append_transactional append append end_transaction roll append append_idempotent roll append
    append_transactional flush compact append append end_transaction roll wait wait append roll compact
    append retain append flush
"""


class OneLog:
    """The scenario of one partition, and the dictionary that it must agree with."""

    steps = ONE_LOG
    is_compacted = False

    def __init__(self, seed: int, after: int = 0) -> None:
        self.world = World(life_of(seed), compacted=self.is_compacted)
        self.world.disk = SimDisk(Random(f"{seed} {after}"), clock=self.world.clock)
        self.world.config = replace(
            LogConfig.parse({}),
            segment_bytes=4000,
            index_interval_bytes=100,
            retention_ms=15_000,
            retention_bytes=2500,
            cleanup_policy=("compact", "delete") if self.is_compacted else ("delete",),
            min_cleanable_dirty_ratio=0.0,
            delete_retention_ms=DELETE_RETENTION_MS,
        )
        self.world.manager = self.world._new_manager()
        self.disk, self.story = self.world.disk, self.world.story

    async def live(self) -> None:
        world = self.world
        await world.manager.open()
        await world.manager.create(TP, TOPIC_ID, world.config)
        for name in self.steps.split():
            await world._step(name)

    async def look(self) -> None:
        """Reopen the log: acknowledged records are there, and appends succeed."""
        world = self.world
        self.story.append("power loss")
        world.tell(world.disk.crash()[:300])
        await world._open()
        if TP not in world.manager.logs:
            assert not world.model.history, "the log is lost"
            await world.manager.create(TP, TOPIC_ID, world.config)
        await world._agree_after_crash()
        for name in (
            "append",
            "append_idempotent",
            "read_all",
            "flush",
            "reopen",
            "read_all",
            "read_committed",
        ):
            await world._step(name)


class CompactedLog(OneLog):
    """The scenario of a partition that is compacted twice."""

    steps = COMPACTED_LOG
    is_compacted = True


class ManyLogs:
    """The scenario of a broker that creates, deletes and recreates partitions in two directories."""

    def __init__(self, seed: int, after: int = 0) -> None:
        self.broker = Broker(life_of(seed), chance=Random(f"{seed} {after}"))
        self.disk, self.story = self.broker.disk, self.broker.story
        self.deleted = False

    async def live(self) -> None:
        broker = self.broker
        await broker.start()
        for tp in (T0, U0, V0):
            for _ in range(4):
                broker.append(tp)
            await broker.flush(tp)
        await broker.checkpoint(A)
        broker.append(U0)
        self.deleted = True
        await broker.manager.delete(T0)
        await broker.checkpoint(A)
        await broker.stop()
        await broker.open()
        broker.append(V0)
        await broker.manager.create(T0, topic_id(T0), broker.config, path=A)
        await broker.stop()

    async def look(self) -> None:
        broker = self.broker
        broker.crash()
        report = await broker.open()
        assert not report.broken
        assert not report.failed
        for tp in (T0, U0, V0):
            if broker.manager.get(tp) is None:
                model = broker.parts[tp].model
                assert model.flushed == 0 or (tp == T0 and self.deleted), f"{tp} is lost"
                broker.parts[tp].model = type(model)()
                await broker.manager.create(tp, topic_id(tp), broker.config)
            elif tp == T0 and self.deleted and broker.log(tp).end_offset == 0:
                broker.parts[tp].model = type(broker.parts[tp].model)()
            broker.settle(tp)
        await broker.is_well(rounds=1)
        await broker.stop()
        await broker.open()
        for tp in broker.parts:
            assert await broker.look(tp) == []


Life = OneLog | ManyLogs


async def everywhere(make: type[Life], seed: int) -> None:
    whole = make(seed)
    await whole.live()
    for after in range(1, whole.disk.operations + 1):
        life = make(seed, after)
        with replayable(seed, life.story):
            life.story.append(f"power goes at operation {after}")
            life.disk.crash_after(after)
            with suppress(PowerLoss):
                await life.live()
            await life.look()


@pytest.mark.parametrize("seed", seeds(2))
def test_a_log_survives_power_loss_at_every_operation(seed: int) -> None:
    asyncio.run(everywhere(OneLog, seed))


@pytest.mark.parametrize("seed", seeds(2))
def test_a_compacted_log_survives_power_loss_at_every_operation(seed: int) -> None:
    asyncio.run(everywhere(CompactedLog, seed))


@pytest.mark.parametrize("seed", seeds(2))
def test_a_broker_survives_power_loss_at_every_operation(seed: int) -> None:
    asyncio.run(everywhere(ManyLogs, seed))


def test_the_scenarios_include_every_operation_of_a_log() -> None:
    life, compacted = OneLog(0), CompactedLog(0)

    asyncio.run(life.live())
    asyncio.run(compacted.live())

    told = " | ".join(life.story)
    assert ".log.deleted" in told
    assert told.count("truncate to") == 2
    assert life.world.model.start > 0
    assert len(life.world.log.segments) > 1
    assert [kept for kept in compacted.story if kept.startswith("compact ") and "kept" in kept]
    assert compacted.world.model.compacted
