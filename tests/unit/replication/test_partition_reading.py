"""Ends of epochs on a leader, whose own epoch begins with its election, before its first batch."""

import pytest

from barnabas.protocol.messages.fetch import EpochEndOffset, FetchPartition, PartitionData
from barnabas.replication.partition import Partition
from barnabas.storage.errors import OffsetOutOfRange
from support.hosted import hosted, image_of, partition_image
from support.log.logs import put
from support.log.managers import on_a_loop

pytestmark = pytest.mark.kernel


async def led_again() -> Partition:
    """Nine records of epoch 0, and a leader of epoch 2 without any records."""
    broker = await hosted(image_of({"orders": [partition_image(epoch=2)]}))
    for _ in range(3):
        put(broker.log("orders"), b"a", b"b", b"c", epoch=0)
    broker.settle()
    return broker.partition("orders")


def read(partition: Partition, offset: int, last_fetched_epoch: int) -> PartitionData:
    asked = FetchPartition(fetch_offset=offset, last_fetched_epoch=last_fetched_epoch)
    return partition.read(asked, committed=False, bytes_max=10_000, whole_batch=True)


@on_a_loop
async def test_an_old_epoch_ends_at_the_log_end() -> None:
    partition = await led_again()

    assert [partition.end_of_epoch(epoch) for epoch in (0, 1, 2, 3, -1)] == [
        (0, 9),
        (0, 9),
        (2, 9),
        (-1, -1),
        (-1, -1),
    ]


@on_a_loop
async def test_a_reader_with_the_new_leader_epoch_is_not_out_of_range() -> None:
    partition = await led_again()

    found = read(partition, 9, 2)

    assert (found.error_code, found.diverging_epoch, found.high_watermark) == (0, None, 9)


@on_a_loop
async def test_a_reader_with_an_unknown_epoch_gets_the_divergence() -> None:
    partition = await led_again()

    assert read(partition, 5, 1).diverging_epoch == EpochEndOffset(epoch=0, end_offset=9)
    assert read(partition, 12, 0).diverging_epoch == EpochEndOffset(epoch=0, end_offset=9)
    with pytest.raises(OffsetOutOfRange):
        read(partition, 9, 3)
