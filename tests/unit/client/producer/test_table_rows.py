"""Arrow tables: partitioning and encoding of rows."""

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from barnabas.client.producer.errors import BadPartition
from barnabas.client.producer.key_hashes import murmur2_partition
from barnabas.client.producer.partitioner import chooser_of
from barnabas.client.producer.settings import ProducerSettings, producer_settings
from barnabas.client.producer.stamp import Identity, stamped
from barnabas.client.producer.tables import PIECE_BYTES, by_partition, encode, hashes_with_murmur2, pieces
from barnabas.records.columns_write import UnfitColumns
from barnabas.records.decode import decode_batch
from barnabas.records.header import read_header
from barnabas.records.validate import check_batch

COUNT, STICKY = 5, 3


def settings(**named: object) -> ProducerSettings:
    return producer_settings({"bootstrap.servers": "a:1"}, named)[0]


def divided(table: Any, partition: int | None = None, **named: object) -> dict[int, list[bytes]]:
    given, function = producer_settings({"bootstrap.servers": "a:1"}, named)
    choose, key_hash = chooser_of(given, function, Random(1))
    parts = by_partition(
        table,
        "orders",
        partition=partition,
        choose=choose,
        murmur2=hashes_with_murmur2(key_hash),
        sticky=STICKY,
        count=COUNT,
    )
    return {number: rows.column("value").to_pylist() for number, rows in parts}


VALUES = [b"%d" % number for number in range(6)]
KEYS = [b"a", b"b", b"a", b"c", b"d", b"b"]


def test_a_given_partition_gets_all_rows() -> None:
    assert divided(pa.table({"value": VALUES, "key": KEYS}), partition=1) == {1: VALUES}


def test_keyless_rows_go_to_the_sticky_partition() -> None:
    assert divided(pa.table({"value": VALUES})) == {STICKY: VALUES}
    nulls = pa.table({"value": VALUES, "key": pa.array([None] * 6, pa.binary())})
    assert divided(nulls) == {STICKY: VALUES}


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string()])
def test_keys_are_hashed_as_those_of_single_records(kind: Any) -> None:
    keys = pa.array([key.decode() if kind == pa.string() else key for key in KEYS], kind)
    expected: dict[int, list[bytes]] = {}
    for key, value in zip(KEYS, VALUES, strict=True):
        expected.setdefault(murmur2_partition(key, COUNT), []).append(value)

    assert divided(pa.table({"value": VALUES, "key": keys})) == expected


def test_rows_with_and_without_keys_are_mixed() -> None:
    keys = [b"a", None, b"a", None, None, b"a"]
    found = divided(pa.table({"value": VALUES, "key": keys}))
    keyed = murmur2_partition(b"a", COUNT)
    assert keyed != STICKY
    assert found == {keyed: [b"0", b"2", b"5"], STICKY: [b"1", b"3", b"4"]}


def test_other_partitioners_are_called_for_each_key() -> None:
    def last(topic: str, key: bytes | None, count: int) -> int:
        return count - 1 if key == b"a" else 0

    found = divided(pa.table({"value": VALUES, "key": KEYS}), partitioner=last)
    assert found == {0: [b"1", b"3", b"4", b"5"], 4: [b"0", b"2"]}


def test_a_partition_column_decides_and_where_it_is_null_the_key_does() -> None:
    table = pa.table({"value": VALUES, "key": KEYS, "partition": [1, 1, None, 0, 0, 0]})
    assert divided(table) == {
        0: [b"3", b"4", b"5"],
        1: [b"0", b"1"],
        murmur2_partition(b"a", COUNT): [b"2"],
    }
    keyless = pa.table({"value": VALUES, "partition": pa.array([4, None, 4, None, 4, 4], pa.int64())})
    assert divided(keyless) == {4: [b"0", b"2", b"4", b"5"], STICKY: [b"1", b"3"]}


@pytest.mark.parametrize("wrong", [[0, 1, 5], [-1, 0, 0]])
def test_a_missing_partition_is_rejected(wrong: list[int]) -> None:
    with pytest.raises(BadPartition):
        divided(pa.table({"value": VALUES[:3], "partition": wrong}))


def test_a_partition_column_of_text_is_refused() -> None:
    with pytest.raises(UnfitColumns):
        divided(pa.table({"value": [b"a"], "partition": ["0"]}))


@pytest.mark.parametrize("idempotent", [True, False])
def test_batches_of_a_table_all_begin_at_offset_0(idempotent: bool) -> None:
    table = pa.table({"value": [b"x" * 1000] * 3000})
    batches = encode(table, settings(enable_idempotence=idempotent), 123)
    if idempotent:
        batches = [stamped(data, Identity(7, 3), number) for number, data in enumerate(batches)]

    assert len(batches) > 2
    for number, data in enumerate(batches):
        check_batch(data)
        header = read_header(data)
        numbers = (header.producer_id, header.producer_epoch, header.base_sequence)
        assert numbers == ((7, 3, number) if idempotent else (-1, -1, -1))
    assert {read_header(data).base_offset for data in batches} == {0}
    assert all(len(data) <= 1_048_576 for data in batches)
    assert sum(read_header(data).count for data in batches) == 3000
    assert decode_batch(batches[-1])[0].timestamp == 123


def test_batches_fit_into_buffer_memory() -> None:
    table = pa.table({"value": [b"x" * 1000] * 100})
    assert all(len(data) <= 5000 for data in encode(table, settings(buffer_memory=5000), 0))


def test_a_large_table_is_taken_in_pieces() -> None:
    table = pa.table({"value": [b"x" * 1000] * 10_000})
    parts = list(pieces(table))

    assert len(parts) > 2
    assert all(part.nbytes <= PIECE_BYTES + 2000 for part in parts)
    assert sum(part.num_rows for part in parts) == 10_000
    assert list(pieces(table.slice(0, 0))) == []
    (whole,) = pieces(table.slice(0, 3).combine_chunks().to_batches()[0])
    assert whole.num_rows == 3
