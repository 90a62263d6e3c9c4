"""The maintenance tasks of a broker's logs, on a simulated disk."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from errno import ENOSPC
from random import Random
from typing import Any

import pytest

from barnabas.base.executor import InlineExecutor
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.records.builder import build_batch
from barnabas.records.decode import decode_batch
from barnabas.records.header import batch_headers
from barnabas.sim.disk import SimDisk
from barnabas.storage.config import LogConfig
from barnabas.storage.directory.checkpoints import read_offsets
from barnabas.storage.log import Log
from barnabas.storage.manager import LogManager
from barnabas.storage.upkeep import Upkeep, UpkeepSettings
from support.clocks import ManualClock

pytestmark = pytest.mark.kernel

TP = TopicPartition("orders", 0)
START_MS = 1_700_000_000_000
TOPIC_ID = Uuid(b"o" * 16)


class House:
    """A manager with one log in it, and its upkeep."""

    def __init__(self, **config: Any) -> None:
        self.clock = ManualClock(START_MS)
        self.disk = SimDisk(Random(7), clock=self.clock)
        self.config = replace(LogConfig.parse({}), **config)
        self.rng = Random(8)

    async def open(self) -> Log:
        await self._start()
        return await self.manager.create(TP, TOPIC_ID, self.config)

    async def open_again(self) -> Log:
        await self._start()
        return self.manager.logs[TP]

    async def _start(self) -> None:
        self.manager = LogManager(
            self.disk,
            self.clock,
            InlineExecutor(),
            paths=["/a", "/b"],
            cluster_id="c",
            node_id=1,
            configs=lambda _: self.config,
            new_id=lambda: Uuid(self.rng.randbytes(16)),
        )
        await self.manager.open()
        self.upkeep = Upkeep(self.manager, UpkeepSettings(cleaner_map_bytes=1 << 16), secret=bytes(16))

    def append(self, log: Log, *records: tuple[bytes | None, bytes | None]) -> None:
        data = build_batch([(self.clock.now_ms(), key, value, ()) for key, value in records])
        log.append_as_leader(data, leader_epoch=0, now_ms=self.clock.now_ms())
        log.advance_high_watermark(log.end_offset)

    def names(self) -> set[str]:
        """The names of the log's files."""
        return {path.rpartition("/")[2] for path in self.disk.tree() if "orders-0/" in path}

    def checkpoint(self, name: str) -> dict[TopicPartition, int] | None:
        return read_offsets(self.disk, f"{self.manager.home(self.manager.logs[TP]).path}/{name}")


def values_in(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    data = log.read(log.start_offset, upto=log.end_offset, bytes_max=1 << 20).read()
    found = [record for at, _ in batch_headers(data) for record in decode_batch(data, at)]
    return [(record.offset, record.key, record.value) for record in found]


def tell(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def test_a_log_is_flushed_when_flush_messages_are_waiting() -> None:
    async def story() -> None:
        house = House(flush_messages=3)
        log = await house.open()
        house.append(log, (b"a", b"1"), (b"b", b"2"))
        await house.upkeep.flush_due()
        assert log.recovery_point == 0

        house.append(log, (b"c", b"3"))
        await house.upkeep.flush_due()

        assert log.recovery_point == 3

    tell(story())


def test_a_finished_segment_is_flushed_without_being_asked() -> None:
    async def story() -> None:
        house = House()
        log = await house.open()
        house.append(log, (b"a", b"1"))

        log.roll(house.clock.now_ms())
        await house.upkeep.flush_due()

        assert log.recovery_point == 1

    tell(story())


def test_a_log_is_flushed_when_something_has_waited_for_flush_ms() -> None:
    async def story() -> None:
        house = House(flush_ms=500)
        log = await house.open()
        house.append(log, (b"a", b"1"))
        await house.upkeep.flush_old()
        house.clock.advance(499)
        await house.upkeep.flush_old()
        assert log.recovery_point == 0

        house.clock.advance(1)
        await house.upkeep.flush_old()

        assert log.recovery_point == 1

    tell(story())


def test_retention_marks_files_and_removes_them_after_the_delay() -> None:
    async def story() -> None:
        house = House(retention_ms=1000, file_delete_delay_ms=60_000)
        log = await house.open()
        house.append(log, (b"a", b"1"))
        log.roll(house.clock.now_ms())
        house.clock.advance(1001)
        house.append(log, (b"b", b"2"))

        await house.upkeep.enforce_retention()

        assert log.start_offset == 1
        assert "00000000000000000000.log" not in house.names()
        assert "00000000000000000000.log.deleted" in house.names()
        house.clock.advance(59_999)
        await house.upkeep.remove_marked()
        assert "00000000000000000000.log.deleted" in house.names()
        house.clock.advance(1)
        await house.upkeep.remove_marked()
        assert not any(name.endswith(".deleted") for name in house.names())

    tell(story())


def test_a_compacted_log_keeps_the_last_value_of_each_key_and_its_offset() -> None:
    async def story() -> None:
        house = House(cleanup_policy=("compact",))
        log = await house.open()
        for number in range(4):
            house.append(log, (b"a", b"%d" % number), (b"b", b"%d" % number))
        log.roll(house.clock.now_ms())
        house.append(log, (b"c", b"new"))
        await house.upkeep.flush_due()

        await house.upkeep.clean_all()

        assert values_in(log) == [(6, b"a", b"3"), (7, b"b", b"3"), (8, b"c", b"new")]
        assert house.manager.clean_offsets == {TP: 8}
        assert house.checkpoint("cleaner-offset-checkpoint") == {TP: 8}

    tell(story())


def test_unflushed_segments_are_not_compacted() -> None:
    async def story() -> None:
        house = House(cleanup_policy=("compact",))
        log = await house.open()
        house.append(log, (b"a", b"1"), (b"a", b"2"))
        log.roll(house.clock.now_ms())
        house.append(log, (b"c", b"new"))

        await house.upkeep.clean_all()

        assert [offset for offset, _, _ in values_in(log)] == [0, 1, 2]

    tell(story())


def test_damage_stops_the_compaction_of_one_log_and_says_so() -> None:
    async def story() -> None:
        house = House(cleanup_policy=("compact",))
        log = await house.open()
        house.append(log, (b"a", b"1"), (b"a", b"2"))
        log.roll(house.clock.now_ms())
        house.append(log, (b"c", b"new"))
        await house.upkeep.flush_due()
        house.disk.rot(f"{log.directory}/00000000000000000000.log", 70, 0xFF)

        await house.upkeep.clean_all()
        await house.upkeep.clean_all()

        assert "00000000000000000000.log is damaged" in house.upkeep.uncleanable[log]
        assert not any(".cleaned" in name for name in house.names())

    tell(story())


def test_a_disk_failure_during_a_flush_takes_its_directory_offline() -> None:
    async def story() -> None:
        house = House(flush_messages=1)
        log = await house.open()
        home = house.manager.home(log)
        house.append(log, (b"a", b"1"))
        house.disk.fail(home.path, {"sync"})

        await house.upkeep.flush_due()

        assert home.offline is not None
        assert log.recovery_point == 0
        other = await house.manager.create(TopicPartition("other", 0), TOPIC_ID, house.config)
        assert house.manager.home(other) is not home

    tell(story())


def test_inactive_producers_are_forgotten() -> None:
    async def story() -> None:
        house = House()
        log = await house.open()
        data = build_batch([(START_MS, b"k", b"v", ())], producer_id=5, producer_epoch=0, base_sequence=0)
        log.append_as_leader(data, leader_epoch=0, now_ms=START_MS)
        house.clock.advance(86_400_000 - 1)
        await house.upkeep.expire_producers()
        assert len(log.producers) == 1

        house.clock.advance(1)
        await house.upkeep.expire_producers()

        assert len(log.producers) == 0

    tell(story())


def test_maintenance_tasks_run_on_schedule_until_cancelled() -> None:
    async def story() -> None:
        house = House(flush_messages=1)
        log = await house.open()
        chores = asyncio.create_task(house.upkeep.run())
        house.append(log, (b"a", b"1"))

        while log.recovery_point == 0:
            await asyncio.sleep(0)

        chores.cancel()
        with pytest.raises(asyncio.CancelledError):
            await chores

    tell(story())


def test_a_disk_failure_while_picking_logs_ends_only_its_directory() -> None:
    async def story() -> None:
        house = House(cleanup_policy=("compact",))
        log = await house.open()
        home = house.manager.home(log)
        house.append(log, (b"a", b"1"), (b"a", b"2"))
        log.roll(house.clock.now_ms())
        house.append(log, (b"c", b"new"))
        await house.upkeep.flush_due()
        await house.manager.close()
        house.manager.logs.clear()
        log = await house.open_again()
        house.disk.cool()
        house.disk.fail(home.path, {"read"})

        await house.upkeep.clean_all()

        assert house.manager.home(log).offline is not None

    tell(story())


def test_a_partly_failed_swap_takes_its_directory_offline() -> None:
    async def story() -> None:
        house = House(cleanup_policy=("compact",))
        log = await house.open()
        house.append(log, (b"a", b"1"), (b"a", b"2"))
        log.roll(house.clock.now_ms())
        house.append(log, (b"c", b"new"))
        await house.upkeep.flush_due()
        # The swap fails half-way, when some files are renamed and others are not.
        house.disk.fail(f"{log.directory}/00000000000000000000.index", {"rename"}, errno=ENOSPC)

        await house.upkeep.clean_all()

        assert "swap failed" in (house.manager.home(log).offline or "")

    tell(story())


def test_a_deleted_partition_is_gone_at_once_and_its_files_later() -> None:
    async def story() -> None:
        house = House(file_delete_delay_ms=5_000)
        log = await house.open()
        house.append(log, (b"a", b"1"))

        await house.manager.delete(TP)

        assert house.manager.get(TP) is None
        assert any("-delete/" in path for path in house.disk.tree())
        house.clock.advance(4_999)
        await house.upkeep.remove_marked()
        assert any("-delete/" in path for path in house.disk.tree())
        house.clock.advance(1)
        await house.upkeep.remove_marked()
        assert not any("orders" in path for path in house.disk.tree())

    tell(story())
