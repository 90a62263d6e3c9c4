"""Arrow tables from corrupt or too large responses. No loop, no network."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.arrow import Limits, TableMaker
from barnabas.client.consumer.decode import find_complete_batches
from barnabas.client.consumer.errors import CorruptRecords
from barnabas.client.consumer.fetch_buffer import FetchBuffer
from barnabas.client.consumer.positions import CompletedFetch, PartitionState
from barnabas.records.header import Codec, stamp
from support.our_client.consumer_worlds import log_of
from support.wire.requests import batch

ENOUGH = 1 << 30

# Other bytes of the response.
HEAD, TAIL = b"before", b"after"


class Desk:
    """One partition with buffered data."""

    def __init__(self, batches: list[bytes], **limits: int) -> None:
        self.buffer = FetchBuffer(check_crcs=True, reports_ends=False, on_space=lambda node: None)
        self.one = PartitionState(TopicPartition("t", 0))
        self.one.move_to(0)
        self.maker = TableMaker(self.buffer, Limits(ENOUGH, ENOUGH, **limits), check_crcs=True, views=False)
        self.arrive(b"".join(batches))

    def arrive(self, data: bytes) -> None:
        whole, next_offset, epoch = find_complete_batches(HEAD + data + TAIL, len(HEAD), len(HEAD + data))
        fetch = CompletedFetch(
            data=HEAD + data + TAIL,
            start=len(HEAD),
            whole=whole,
            from_offset=self.one.fetch_offset,
            next_offset=next_offset,
            last_epoch=epoch,
            end_offset=100,
            aborted=[],
            node=1,
        )
        self.buffer.add(self.one, fetch)

    def offsets(self) -> list[int] | None:
        table = self.maker.next_table()
        return None if table is None else table.column("offset").to_pylist()


@pytest.mark.parametrize("wrong", range(7))
def test_rows_before_a_corrupt_batch_are_returned_before_the_error(wrong: int) -> None:
    batches = log_of(*[2] * 7)
    batches[wrong] = batches[wrong][:-1] + b"?"
    desk = Desk(batches)

    if wrong > 0:
        assert desk.offsets() == list(range(2 * wrong))
    with pytest.raises(CorruptRecords, match="CRC") as error:
        desk.offsets()

    assert (error.value.offset, error.value.next_offset) == (2 * wrong, 2 * wrong + 2)
    assert (desk.one.position, desk.one.fetch_offset) == (2 * wrong, 2 * wrong)
    assert (desk.offsets(), desk.buffer.buffered_bytes) == (None, {1: 0})


def packed(first: int, size: int) -> bytes:
    data = bytearray(batch(bytes(size), codec=Codec.GZIP))
    stamp(data, 0, base_offset=first, leader_epoch=0)
    return bytes(data)


def test_batches_too_large_for_one_table_are_fetched_again() -> None:
    desk = Desk([packed(0, 1000), packed(1, 1000), packed(2, 1000)], unpacked_bytes=2500)

    assert desk.offsets() == [0, 1]
    assert desk.offsets() is None
    assert (desk.one.error, desk.one.position, desk.one.fetch_offset) == (None, 2, 2)
    desk.arrive(packed(2, 1000))
    assert desk.offsets() == [2]


def test_one_batch_that_unpacks_to_too_much_is_an_error() -> None:
    desk = Desk([packed(0, 5000)], unpacked_bytes=2500)

    with pytest.raises(CorruptRecords) as error:
        desk.offsets()
    assert (error.value.offset, error.value.next_offset) == (0, 1)
