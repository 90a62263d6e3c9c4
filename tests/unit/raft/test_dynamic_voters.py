"""A metadata log with dynamic voters is detected before anything in it is changed."""

import json
import random

import pytest

from barnabas.protocol.stored.control import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from barnabas.protocol.stored.framing import encode_control
from barnabas.raft.batches import leader_change_batch
from barnabas.raft.dynamic_voters import DynamicVoters, check_voters_are_fixed
from barnabas.raft.facts import OffsetAndEpoch
from barnabas.raft.snapshots import snapshot_name
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.header import stamp
from barnabas.sim.disk import SimDisk

HOME = "/data"
LOG = f"{HOME}/__cluster_metadata-0"


def disk(**files: bytes) -> SimDisk:
    fs = SimDisk(random.Random(1))
    fs.make_directory(LOG)
    for name, content in files.items():
        put(fs, name, content)
    return fs


def put(fs: SimDisk, name: str, content: bytes) -> None:
    file = fs.open(f"{LOG}/{name}", create=True)
    file.write(0, [content])
    file.close()


def control(kind: ControlType, message: object, offset: int = 0) -> bytes:
    return build_control_batch(kind, encode_control(message), timestamp=1, base_offset=offset, leader_epoch=1)


def records(offset: int, size: int = 10) -> bytes:
    batch = bytearray(build_batch([(1, None, b"x" * size, ())]))
    stamp(batch, 0, base_offset=offset, leader_epoch=1)
    return bytes(batch)


RAISED = control(ControlType.KRAFT_VERSION, KRaftVersionRecord(version=0, k_raft_version=1), 5)
VOTERS = control(ControlType.KRAFT_VOTERS, VotersRecord(version=0, voters=[]), 6)
HEADER = control(ControlType.SNAPSHOT_HEADER, SnapshotHeaderRecord(version=0, last_contained_log_timestamp=0))
FOOTER = control(ControlType.SNAPSHOT_FOOTER, SnapshotFooterRecord(version=0))
ELECTED = leader_change_batch(leader=1, voters=[1], granting=[1], epoch=1, now_ms=1)


def test_a_new_directory_has_no_voters_yet() -> None:
    check_voters_are_fixed(SimDisk(random.Random(1)), HOME)
    check_voters_are_fixed(disk(), HOME)


def test_a_log_with_leaders_and_records_has_fixed_voters() -> None:
    fs = disk()
    put(fs, f"{0:020d}.log", ELECTED + records(1) + records(2, 600_000) + records(3))
    put(fs, snapshot_name(OffsetAndEpoch(2, 1)), HEADER + records(0) + FOOTER)
    put(fs, "quorum-state", json.dumps({"data_version": 0}).encode())

    check_voters_are_fixed(fs, HOME)


@pytest.mark.parametrize("told", [RAISED, VOTERS])
@pytest.mark.parametrize(
    "before",
    [b"", ELECTED, records(1, 600_000), b"".join(records(at, 1000) for at in range(1, 700))],
    ids=["first", "after a leader", "after a large batch", "in the third piece"],
)
def test_dynamic_voters_are_detected_anywhere_in_the_log(told: bytes, before: bytes) -> None:
    fs = disk()
    put(fs, f"{0:020d}.log", before + told + records(9))

    with pytest.raises(DynamicVoters, match=r"/data has dynamic voters .*00000\.log\)"):
        check_voters_are_fixed(fs, HOME)


def test_dynamic_voters_are_detected_in_the_newest_snapshot() -> None:
    fs = disk()
    put(fs, snapshot_name(OffsetAndEpoch(0, 0)), HEADER + RAISED + VOTERS + FOOTER)

    with pytest.raises(DynamicVoters, match=r"\.checkpoint\)"):
        check_voters_are_fixed(fs, HOME)


def test_segments_before_the_newest_snapshot_are_not_read() -> None:
    fs = disk()
    for base in (0, 10, 20):
        put(fs, f"{base:020d}.log", records(base))
    put(fs, snapshot_name(OffsetAndEpoch(10, 1)), HEADER + FOOTER)
    fs.fail(f"{LOG}/{0:020d}.log", ["open"])

    check_voters_are_fixed(fs, HOME)

    put(fs, f"{10:020d}.log", RAISED)
    with pytest.raises(DynamicVoters):
        check_voters_are_fixed(fs, HOME)


def test_dynamic_voters_are_detected_in_quorum_state() -> None:
    fs = disk()
    put(fs, "quorum-state", b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"data_version":1}')

    with pytest.raises(DynamicVoters, match=r"quorum-state\)"):
        check_voters_are_fixed(fs, HOME)


@pytest.mark.parametrize(
    "damage", [b"\x00" * 100, ELECTED[:70], b"x" * 500, b"\xff" * 70, RAISED[:61] + bytes(len(RAISED) - 61)]
)
def test_damaged_batches_are_left_to_the_recovery(damage: bytes) -> None:
    fs = disk()
    put(fs, f"{0:020d}.log", ELECTED + damage)
    put(fs, "quorum-state", damage)
    put(fs, snapshot_name(OffsetAndEpoch(0, 0)), damage)

    check_voters_are_fixed(fs, HOME)
