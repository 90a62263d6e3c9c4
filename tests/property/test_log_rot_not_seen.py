"""Rotten bits that nobody sees, one by one: each of these is to become an error, or to make no difference."""

from dataclasses import replace
from typing import Final

import pytest

from barnabas.records.header import batch_headers
from barnabas.storage.errors import CorruptLog
from barnabas.storage.warming import warmed
from support.checking_consumer import check_times
from support.fault_world import T0, A, Broker, play

pytestmark = pytest.mark.kernel

SIGN: Final = 0x80
SEGMENT: Final = f"{A}/t-0/{0:020d}"


async def ten_batches(broker: Broker, *, index_interval: int = 0) -> None:
    """One record each, of rising times, in one finished segment, with an index entry for every one."""
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


def test_a_flushed_batch_that_reaches_behind_the_recovery_point_is_an_error() -> None:
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


def test_a_rotten_leader_epoch_costs_no_record_behind_it() -> None:
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


def test_an_index_entry_with_a_negative_position_is_made_anew() -> None:
    async def story(broker: Broker) -> None:
        await ten_batches(broker)
        await broker.flush(T0)
        broker.disk.rot(f"{SEGMENT}.index", 4 * 8 + 4, SIGN)

        log = broker.log(T0)
        await warmed(log, broker.executor, lambda: log.read(5, upto=10, bytes_max=1))

    play(0, story)


def test_an_entry_of_a_negative_time_is_made_anew() -> None:
    async def story(broker: Broker) -> None:
        await ten_batches(broker)
        await broker.flush(T0)
        broker.disk.rot(f"{SEGMENT}.timeindex", 4 * 12, SIGN)

        assert await broker.look(T0) == []

    play(0, story)


@pytest.mark.xfail(strict=True, reason="a batch's base offset is believed, and no CRC covers it")
@pytest.mark.parametrize("offset", [0, 5, 9])
@pytest.mark.parametrize(("byte", "mask"), [(2, 1), (6, 1), (7, 0x10)])
def test_a_batch_with_a_rotten_base_offset_is_not_served(offset: int, byte: int, mask: int) -> None:
    async def story(broker: Broker) -> None:
        await ten_batches(broker)
        await broker.flush(T0)
        broker.disk.rot(f"{SEGMENT}.log", position_of(broker, offset) + byte, mask)

        assert await broker.look(T0)

    play(0, story)


PASSED_OVER = pytest.mark.xfail(strict=True, reason="a batch that says it is too old is passed over unread")


@pytest.mark.parametrize("byte", [8, 29, pytest.param(37, marks=PASSED_OVER)])
def test_an_offset_by_time_is_right_or_an_error_when_a_header_rots(byte: int) -> None:
    async def story(broker: Broker) -> None:
        await ten_batches(broker, index_interval=1 << 20)
        await broker.flush(T0)
        # The length, the first timestamp or the last one.
        broker.disk.rot(f"{SEGMENT}.log", position_of(broker, 6) + byte, 1)

        await check_times(broker.consumer(T0), broker.parts[T0].model)

    play(0, story)


def test_a_batch_with_an_offset_out_of_the_world_is_an_error_when_indexes_are_made_anew() -> None:
    async def story(broker: Broker) -> None:
        await ten_batches(broker)
        await broker.flush(T0)
        broker.disk.rot(f"{SEGMENT}.log", position_of(broker, 5) + 2, 1)

        log = broker.log(T0)
        with pytest.raises(CorruptLog):
            await warmed(log, broker.executor, lambda: log.read(5, upto=10, bytes_max=1))

    play(0, story)


@pytest.mark.xfail(strict=True, reason="the index of aborted transactions has no CRC, and is believed")
@pytest.mark.parametrize(("byte", "mask"), [(9, 2), (17, 4)])
def test_an_aborted_transaction_that_rots_is_noticed(byte: int, mask: int) -> None:
    async def story(broker: Broker) -> None:
        await broker.start()
        for aborted in (False, True):
            broker.append_data(T0, 11, transactional=True)
            broker.end_transaction(T0, 11, aborted=aborted)
        await broker.flush(T0)
        broker.disk.rot(f"{SEGMENT}.txnindex", byte, mask)

        assert await broker.look(T0)

    play(0, story)


def test_a_rotten_start_offset_does_not_cost_the_log() -> None:
    async def story(broker: Broker) -> None:
        await ten_batches(broker)
        broker.delete_records(T0, 5)
        await broker.stop()
        content = broker.disk.read(f"{A}/log-start-offset-checkpoint")
        # From 5 to 15: one bit would do in a longer number.
        broker.overwrite(f"{A}/log-start-offset-checkpoint", content.replace(b" 5\n", b" 15\n"))

        before = broker.disk.read(f"{SEGMENT}.log")

        await broker.open()

        assert isinstance(broker.manager.broken[T0], CorruptLog)
        assert broker.disk.read(f"{SEGMENT}.log") == before

    play(0, story)
