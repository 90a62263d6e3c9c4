"""Offset checkpoints in Kafka's format."""

from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.storage.directory.checkpoints import OFFSET_CHECKPOINTS, read_offsets, write_offsets
from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.errors import CorruptFile
from support.kafka.sample import sample_files

FS = DiskFileSystem()
ORDERS = TopicPartition("orders", 0)


def read(tmp_path: Path, content: bytes) -> dict[TopicPartition, int] | None:
    (tmp_path / "checkpoint").write_bytes(content)
    return read_offsets(FS, f"{tmp_path}/checkpoint")


@pytest.mark.parametrize("name", OFFSET_CHECKPOINTS)
def test_a_checkpoint_of_kafka_is_written_back_byte_for_byte(name: str, tmp_path: Path) -> None:
    content = sample_files()[name]

    offsets = read(tmp_path, content)
    assert offsets is not None
    write_offsets(FS, f"{tmp_path}/again", offsets)

    assert (tmp_path / "again").read_bytes() == content


def test_a_checkpoint_of_kafka_is_understood(tmp_path: Path) -> None:
    offsets = read(tmp_path, sample_files()["recovery-point-offset-checkpoint"])

    assert offsets is not None
    assert len(offsets) == 13
    assert offsets[TopicPartition("__consumer_offsets", 0)] == 22


def test_a_missing_file_is_not_an_empty_one(tmp_path: Path) -> None:
    assert read_offsets(FS, f"{tmp_path}/nowhere") is None


def test_the_empty_file_that_kafka_makes_first_holds_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, b"") == {}
    assert read(tmp_path, b"0\n0\n") == {}


def test_blanks_and_line_ends_may_be_other_ones(tmp_path: Path) -> None:
    assert read(tmp_path, b"0\r\n1\r\norders  0\t7\r\n") == {ORDERS: 7}
    assert read(tmp_path, b"0\n1\norders 0 7") == {ORDERS: 7}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"1\n1\norders 0 7\n", "line 1 is '1', expected version 0"),
        (b"\n", "line 1 is '', expected version"),
        (b"0", "line 2 is not the number"),
        (b"0\nx\norders 0 7\n", "line 2 is not the number"),
        (b"0\n-1\n", "line 2 is not the number"),
        (b"0\n99999999999999999999999\n", "line 2 is not the number"),
        (b"0\n2\norders 0 7\n", "line 2 says 2 entries, found 1"),
        (b"0\n0\norders 0 7\n", "line 2 says 0 entries, found 1"),
        (b"0\n2\norders 0 7\n\n", "line 4 is ''"),
        (b"0\n1\norders 0\n", "line 3 is 'orders 0', expected 'topic partition offset'"),
        (b"0\n1\norders 0 7 8\n", "line 3"),
        (b"0\n1\norders 0 -7\n", "line 3 is 'orders 0 -7': partition or offset is out of range"),
        (b"0\n1\norders x 7\n", "line 3"),
        (b"0\n1\norders 2147483648 7\n", "line 3"),
        (b"0\n1\norders 0 9223372036854775808\n", "line 3"),
        (b"0\n1\norders 0 " + b"1" * 5000 + b"\n", "line 3"),
        (b"0\n1\norders 0 \xc2\xb2\n", "line 3"),
        (b"0\n3\na 0 1\norders 0 7\norders 0 8\n", "line 5 repeats partition orders-0"),
        (b"0\n3\na 0 1\norders 0 7\norders 00 8\n", "line 5 repeats partition orders-00"),
        (b"0\n1\norders\xff 0 7\n", "byte 10 is not UTF-8"),
        (bytes(220), "line 1"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(content: bytes, what: str, tmp_path: Path) -> None:
    with pytest.raises(CorruptFile) as raised:
        read(tmp_path, content)

    assert what in str(raised.value)
    assert str(raised.value).startswith(f"{tmp_path}/checkpoint: ")
    assert len(str(raised.value)) < 300


def test_ten_thousand_partitions_are_read_back(tmp_path: Path) -> None:
    path = f"{tmp_path}/checkpoint"
    offsets = {TopicPartition(f"topic-{number}", number % 7): number << 30 for number in range(10_000)}

    write_offsets(FS, path, offsets)

    assert read_offsets(FS, path) == offsets
