"""Flipped bits that the tests with random bits skip: each must give an error or make no difference."""

from dataclasses import replace
from typing import Final

import pytest

from barnabas.records.header import batch_headers
from barnabas.storage.errors import CorruptLog
from barnabas.storage.warming import warmed
from support.log.fault_world import T0, A, Broker, play
from support.our_client.checking_consumer import check_times

pytestmark = pytest.mark.kernel

SIGN: Final = 0x80
SEGMENT: Final = f"{A}/t-0/{0:020d}"


async def ten_batches(broker: Broker, *, index_interval: int = 0) -> None:
    """Write ten batches of one record with increasing timestamps, each with an index entry, and roll."""
    broker.config = replace(broker.config, index_interval_bytes=index_interval)
    await broker.start()
    for _ in range(10):
        broker.clock.advance(1000)
        broker.append_one(T0)
    broker.roll(T0)
    broker.append_one(T0)


def position_of(broker: Broker, offset: int) -> int:
    batches = batch_headers(broker.disk.read(f"{SEGMENT}.log"))
    return next(position for position, header in batches if header.base_offset == offset)


def test_a_batch_that_claims_offsets_of_the_next_segment_is_an_error() -> None:
    async def story(broker: Broker) -> None:
        await ten_batches(broker)
        broker.disk.rot(f"{SEGMENT}.log", position_of(broker, 5) + 24, 0x40)

        assert await broker.look(T0)

    play(0, story)


def test_a_batch_that_claims_offsets_above_the_recovery_point_is_an_error() -> None:
    async def story(broker: Broker) -> None:
        await ten_batches(broker)
        await broker.flush(T0)
        await broker.checkpoint(A)
        active = f"{A}/t-0/{10:020d}.log"
        broker.disk.rot(active, 26, 0x40)
        broker.crash()

        await broker.open()

        with pytest.raises(CorruptLog):
            broker.log(T0)

    play(0, story)


def test_a_damaged_leader_epoch_loses_no_later_record() -> None:
    async def story(broker: Broker) -> None:
        await broker.start()
        for _ in range(5):
            broker.append_one(T0)
        await broker.flush(T0)
        await broker.checkpoint(A)
        for _ in range(5):
            broker.append_one(T0)
        await broker.flush(T0)
        broker.disk.rot(f"{SEGMENT}.log", position_of(broker, 4) + 14, 0x40)
        broker.crash()

        await broker.open()

        assert not broker.manager.broken
        broker.settle(T0)

    play(0, story)


def test_an_offset_index_with_a_negative_position_is_rebuilt() -> None:
    async def story(broker: Broker) -> None:
        await ten_batches(broker)
        await broker.flush(T0)
        broker.disk.rot(f"{SEGMENT}.index", 4 * 8 + 4, SIGN)

        log = broker.log(T0)
        await warmed(log, broker.executor, lambda: log.read(5, upto=10, bytes_max=1))

    play(0, story)


def test_a_time_index_with_a_negative_timestamp_is_rebuilt() -> None:
    async def story(broker: Broker) -> None:
        await ten_batches(broker)
        await broker.flush(T0)
        broker.disk.rot(f"{SEGMENT}.timeindex", 4 * 12, SIGN)

        assert await broker.look(T0) == []

    play(0, story)


@pytest.mark.xfail(strict=True, reason="no CRC covers a batch's base offset")
@pytest.mark.parametrize("offset", [0, 5, 9])
@pytest.mark.parametrize(("byte", "mask"), [(2, 1), (6, 1), (7, 0x10)])
def test_a_batch_with_a_damaged_base_offset_is_not_served(offset: int, byte: int, mask: int) -> None:
    async def story(broker: Broker) -> None:
        await ten_batches(broker)
        await broker.flush(T0)
        broker.disk.rot(f"{SEGMENT}.log", position_of(broker, offset) + byte, mask)

        assert await broker.look(T0)

    play(0, story)


PASSED_OVER = pytest.mark.xfail(
    strict=True, reason="a batch whose header says that it is too old is skipped unchecked"
)


@pytest.mark.parametrize("byte", [8, 29, pytest.param(37, marks=PASSED_OVER)])
def test_a_lookup_by_time_is_right_or_an_error_with_a_damaged_header(byte: int) -> None:
    async def story(broker: Broker) -> None:
        await ten_batches(broker, index_interval=1 << 20)
        await broker.flush(T0)
        # In the length, the base timestamp or the max timestamp.
        broker.disk.rot(f"{SEGMENT}.log", position_of(broker, 6) + byte, 1)

        await check_times(broker.consumer(T0), broker.parts[T0].model)

    play(0, story)


def test_an_offset_far_outside_its_segment_fails_an_index_rebuild() -> None:
    async def story(broker: Broker) -> None:
        await ten_batches(broker)
        await broker.flush(T0)
        broker.disk.rot(f"{SEGMENT}.log", position_of(broker, 5) + 2, 1)

        log = broker.log(T0)
        with pytest.raises(CorruptLog):
            await warmed(log, broker.executor, lambda: log.read(5, upto=10, bytes_max=1))

    play(0, story)


@pytest.mark.xfail(strict=True, reason="the index of aborted transactions has no CRC")
@pytest.mark.parametrize(("byte", "mask"), [(9, 2), (17, 4)])
def test_a_damaged_txnindex_entry_is_detected(byte: int, mask: int) -> None:
    async def story(broker: Broker) -> None:
        await broker.start()
        for aborted in (False, True):
            broker.append_data(T0, 11, transactional=True)
            broker.end_transaction(T0, 11, aborted=aborted)
        await broker.flush(T0)
        broker.disk.rot(f"{SEGMENT}.txnindex", byte, mask)

        assert await broker.look(T0)

    play(0, story)


def test_a_damaged_start_offset_leaves_the_log_files_untouched() -> None:
    async def story(broker: Broker) -> None:
        await ten_batches(broker)
        broker.delete_records(T0, 5)
        await broker.stop()
        content = broker.disk.read(f"{A}/log-start-offset-checkpoint")
        # From 5 to 15. In a longer number, one flipped bit has the same effect.
        broker.overwrite(f"{A}/log-start-offset-checkpoint", content.replace(b" 5\n", b" 15\n"))

        before = broker.disk.read(f"{SEGMENT}.log")

        await broker.open()

        assert isinstance(broker.manager.broken[T0], CorruptLog)
        assert broker.disk.read(f"{SEGMENT}.log") == before

    play(0, story)
