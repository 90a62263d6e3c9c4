"""Producer snapshot files: Kafka's, our own, and damaged ones."""

import struct
from pathlib import PurePath

import pytest

from barnabas.records.header import crc32c_of
from barnabas.storage.errors import CorruptFile
from barnabas.storage.names import split_name
from barnabas.storage.producers.snapshot import read_snapshot, write_snapshot
from barnabas.storage.producers.table import Duplicate, Origin, Producers
from support.kafka.sample import sample_files
from support.log.producer_logs import header, replay

pytestmark = pytest.mark.kernel

SNAPSHOTS = [name for name in sample_files() if name.endswith(".snapshot")]
EMPTY = bytes.fromhex("0001 48674bc7 00000000")
# producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, open since
ENTRY = struct.Struct(">qhiqiqiq")
GOOD = (7, 1, 9, 40, 4, 123, 5, 30)


def end_offset(name: str) -> int:
    found = split_name(PurePath(name).name)
    assert found is not None
    return found[0]


def log_of(name: str) -> bytes:
    directory = str(PurePath(name).parent)
    return b"".join(
        data
        for path, data in sample_files().items()
        if path.endswith(".log") and str(PurePath(path).parent) == directory
    )


def snapshot(*entries: tuple[int, ...], count: int | None = None) -> bytes:
    count = len(entries) if count is None else count
    body = struct.pack(">i", count) + b"".join(ENTRY.pack(*entry) for entry in entries)
    return struct.pack(">hI", 1, crc32c_of(body, 0, len(body))) + body


def test_the_sample_has_snapshots_with_and_without_producers() -> None:
    sizes = {len(sample_files()[name]) for name in SNAPSHOTS}

    assert sizes == {10, 56, 102}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_kafkas_snapshots_are_written_back_as_they_were(name: str) -> None:
    data = sample_files()[name]

    producers = read_snapshot(data, name, end_offset(name))

    assert producers.end_offset == end_offset(name)
    assert write_snapshot(producers) == data


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_replaying_kafkas_logs_makes_kafkas_snapshots(name: str) -> None:
    producers, _ = replay(log_of(name), end_offset(name))

    assert producers.end_offset == end_offset(name)
    assert write_snapshot(producers) == sample_files()[name]


def test_an_empty_snapshot_has_ten_bytes() -> None:
    assert write_snapshot(Producers()) == EMPTY
    assert read_snapshot(EMPTY, "x", 77).end_offset == 77


def test_a_snapshot_restores_all_but_the_older_batches() -> None:
    producers = Producers()
    producers.appended(header(7, epoch=2, sequence=0, count=3, transactional=True, timestamp=100), 10)
    producers.appended(header(7, epoch=2, sequence=3, count=2, transactional=True, timestamp=101), 13)
    producers.appended(header(9, sequence=5, timestamp=102), 15)

    loaded = read_snapshot(write_snapshot(producers), "x", 16)

    assert loaded.entries() == producers.entries()
    assert loaded.first_open_offset() == 10
    again = loaded.check(header(7, epoch=2, sequence=3, count=2, transactional=True), Origin.CLIENT)
    assert again == Duplicate(13, 14, 101)


def test_the_first_open_offset_is_that_of_the_earliest_transaction() -> None:
    loaded = read_snapshot(snapshot((1, 0, 0, 40, 0, 1, 0, 40), (2, 0, 0, 30, 0, 1, 0, 30)), "x", 41)

    assert loaded.first_open_offset() == 30


def test_producers_are_in_the_order_of_a_java_hash_map() -> None:
    high, middle = 1 << 32 | 3, 1 << 16 | 5
    producers = Producers()
    for offset, producer_id in enumerate([1000, middle, high, 4, 2000, 2, 0]):
        producers.appended(header(producer_id, timestamp=1), offset)

    written = write_snapshot(producers)

    # 2000 and 0 share the first of sixteen buckets. The upper bits of an id are mixed into the lower ones, so
    # `high` is in the bucket of 2 and `middle` in that of 4, in order of insertion.
    ids = [entry[0] for entry in ENTRY.iter_unpack(written[10:])]
    assert ids == [2000, 0, high, 2, middle, 4, 1000]


def test_the_hash_map_grows_when_it_is_three_quarters_full() -> None:
    def order(count: int) -> list[int]:
        producers = Producers()
        for offset, producer_id in enumerate([16, *range(count - 1)]):
            producers.appended(header(producer_id, timestamp=1), offset)
        return [entry[0] for entry in ENTRY.iter_unpack(write_snapshot(producers)[10:])]

    assert order(12)[0] == 16
    assert order(13)[-1] == 16


@pytest.mark.parametrize("size", [0, 1, 5, 9, 11, 55, 57])
def test_a_file_of_another_size_is_refused(size: int) -> None:
    whole = snapshot(GOOD) + b"\0"

    with pytest.raises(CorruptFile):
        read_snapshot(whole[:size], "x", 41)


def test_every_flipped_bit_is_noticed() -> None:
    whole = snapshot(GOOD)

    for bit in range(len(whole) * 8):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptFile):
            read_snapshot(bytes(damaged), "x", 41)


@pytest.mark.parametrize("count", [0, 2, -1, 2**31 - 1, -(2**31)])
def test_a_wrong_count_is_refused(count: int) -> None:
    with pytest.raises(CorruptFile, match="do not match the file size"):
        read_snapshot(snapshot(GOOD, count=count), "x", 41)


@pytest.mark.parametrize(
    "entries",
    [
        [(-1, *GOOD[1:])],
        [GOOD, GOOD],
        [GOOD, (8, *GOOD[1:])],
        [(7, 1, 9, 41, 4, 123, 5, 30)],
        [(7, 1, 9, 40, 4, 123, 5, 41)],
        [(7, 1, 9, 40, 41, 123, 5, 30)],
        [(7, 1, 9, 40, -1, 123, 5, 30)],
    ],
    ids=[
        "negative producer id",
        "one producer twice",
        "two transactions at one offset",
        "a batch beyond the end",
        "a transaction beyond the end",
        "a batch from before the log",
        "a batch that ends before it begins",
    ],
)
def test_producers_that_cannot_be_are_refused(entries: list[tuple[int, ...]]) -> None:
    assert read_snapshot(snapshot(GOOD), "x", 41).entries() == [GOOD]

    with pytest.raises(CorruptFile, match="x: "):
        read_snapshot(snapshot(*entries), "x", 41)
