"""Snapshot files: written ones can be read, incomplete ones are rejected."""

from random import Random

import pytest

from barnabas.raft.batches import encode_record
from barnabas.raft.facts import OffsetAndEpoch
from barnabas.raft.snapshots import (
    SNAPSHOT_BATCH_BYTES,
    SnapshotFile,
    list_snapshots,
    new_log_start,
    parse_snapshot_name,
    read_bootstrap,
    read_snapshot,
    remove_snapshots,
    remove_unfinished,
    snapshot_batches,
    snapshot_name,
    write_bootstrap,
)
from barnabas.records.builder import build_batch
from barnabas.records.header import Codec
from barnabas.sim.disk import SimDisk
from barnabas.storage.errors import CorruptFile
from support.quorums import ROOT, bulk, config

ID = OffsetAndEpoch(32, 4)
PATH = f"{ROOT}/{snapshot_name(ID)}"


def new_disk() -> SimDisk:
    disk = SimDisk(Random(0))
    disk.make_directory(ROOT)
    return disk


def batches(records: list[object]) -> list[bytes]:
    return list(snapshot_batches(records, epoch=4, last_contained_ms=77, now_ms=99))


def write(disk: SimDisk, parts: list[bytes], path: str = PATH) -> None:
    file = SnapshotFile(disk, path)
    for part in parts:
        file.append(part)
    file.freeze()


def test_a_name_says_offset_and_epoch() -> None:
    assert snapshot_name(ID) == "00000000000000000032-0000000004.checkpoint"
    assert parse_snapshot_name(snapshot_name(ID)) == ID


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000032-0000000004.checkpoint.part",
        "00000000000000000032-0000000004.checkpoint.deleted",
        "bootstrap.checkpoint",
        "99999999999999999999-0000000004.checkpoint",
        "00000000000000000032-9999999999.checkpoint",
    ],
)
def test_other_names_are_no_snapshots(name: str) -> None:
    assert parse_snapshot_name(name) is None


def test_written_records_are_read_back_with_versions() -> None:
    disk = new_disk()
    write(disk, batches([config(1), config(2)]))

    snapshot = read_snapshot(disk, PATH)

    assert snapshot.last_contained_ms == 77
    assert list(snapshot.records()) == [(config(1), 0), (config(2), 0)]


def test_many_records_are_spread_over_batches() -> None:
    records = bulk(3 * SNAPSHOT_BATCH_BYTES)
    disk = new_disk()
    parts = batches(records)
    write(disk, parts)

    assert len(parts) > 4
    assert max(map(len, parts)) <= SNAPSHOT_BATCH_BYTES
    assert [record for record, _ in read_snapshot(disk, PATH).records()] == records


def test_compressed_batches_are_read_too() -> None:
    disk = new_disk()
    head, _, foot = batches([config(1)])
    packed = build_batch([(99, None, encode_record(config(5)), ())], base_offset=1, codec=Codec.ZSTD)
    write(disk, [head, packed, foot])

    assert list(read_snapshot(disk, PATH).records()) == [(config(5), 0)]


HEAD, BODY, FOOT = batches([config(1)])


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "has no footer"),
        (HEAD + BODY, "has no footer"),
        (BODY + FOOT, "snapshot has no header"),
        (FOOT, "snapshot has no header"),
        (HEAD + FOOT + BODY, "data follows the footer at byte"),
        (HEAD + BODY + FOOT[:-1], "exceeds the 74 bytes left"),
        (HEAD + BODY[:70] + b"\xff" + BODY[71:] + FOOT, "CRC"),
    ],
)
def test_an_incomplete_snapshot_is_a_declared_error(content: bytes, what: str) -> None:
    disk = new_disk()
    write(disk, [content])

    with pytest.raises(CorruptFile, match=what):
        read_snapshot(disk, PATH)


def test_a_record_that_is_not_known_is_one_declared_error() -> None:
    disk = new_disk()
    bad = build_batch([(99, None, b"\x01\xff\x01\x00", ())], base_offset=1)
    write(disk, [HEAD, bad, FOOT])

    with pytest.raises(CorruptFile, match="metadata record type 255"):
        list(read_snapshot(disk, PATH).records())


def test_only_complete_snapshots_are_listed_and_others_can_be_removed() -> None:
    disk = new_disk()
    write(disk, batches([]))
    SnapshotFile(disk, f"{ROOT}/{snapshot_name(OffsetAndEpoch(50, 4))}").append(HEAD)

    assert list_snapshots(disk, ROOT) == {ID: len(HEAD) + len(FOOT)}
    remove_unfinished(disk, ROOT)
    assert list(disk.tree()) == [PATH]
    remove_snapshots(disk, ROOT, [ID])
    assert disk.tree() == {}


def test_a_snapshot_that_has_its_name_survives_a_power_loss() -> None:
    disk = new_disk()
    disk.sync_directory("/")
    write(disk, batches([config(1)]))

    disk.crash()

    assert list(read_snapshot(disk, PATH).records()) == [(config(1), 0)]


def test_the_bootstrap_snapshot_is_read_back() -> None:
    disk = new_disk()

    assert read_bootstrap(disk, ROOT) is None
    write_bootstrap(disk, ROOT, [config(1)], now_ms=5)

    assert read_bootstrap(disk, ROOT) == [config(1)]


# Deletion of old snapshots

A, B, C = OffsetAndEpoch(10, 1), OffsetAndEpoch(20, 1), OffsetAndEpoch(30, 2)
AGES = {A: 300, B: 200, C: 100}


@pytest.mark.parametrize(
    ("log_size", "max_bytes", "max_age_ms", "start"),
    [
        (50, 1000, 1000, None),
        (50, -1, -1, None),
        (50, 79, -1, B),
        (50, 60, -1, C),
        (50, 0, -1, C),
        (50, -1, 250, B),
        (50, -1, 0, C),
    ],
)
def test_the_oldest_snapshots_are_deleted_by_size_or_age(
    log_size: int, max_bytes: int, max_age_ms: int, start: OffsetAndEpoch | None
) -> None:
    found = new_log_start(
        {A: 10, B: 10, C: 10},
        log_size=log_size,
        max_bytes=max_bytes,
        max_age_ms=max_age_ms,
        age_ms=lambda one: AGES[one],
    )

    assert found == start
