"""A broker with damaged metadata does not start: it names file, byte and remedy, and exits with code 1."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.protocol.messages.topics import CreateTopicsRequest
from barnabas.records.builder import build_batch
from barnabas.records.header import batch_headers
from support.hostile.victim import Victim
from support.process.ports import free_port
from support.wire.client import WireClient
from support.wire.requests import new_topic, went_well

END_TIMEOUT_S = 30
TOPICS = 5
# The log starts at a snapshot, and has several segments.
WITH_SNAPSHOTS = {
    "metadata.log.segment.ms": 100,
    "metadata.log.max.record.bytes.between.snapshots": 500,
    "metadata.max.retention.ms": 1,
    "metadata.max.idle.interval.ms": 50,
}
RESTORE = "; restore .*__cluster_metadata-0 from a backup"


def first_log(directory: Path) -> Path:
    return min(directory.glob("*.log"))


def newest_snapshot(directory: Path) -> Path:
    return max(directory.glob("*.checkpoint"))


def batches(log: Path) -> list[int]:
    """Where the batches start."""
    return [at for at, _ in batch_headers(log.read_bytes())]


def change(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def truncate(directory: Path) -> None:
    log = first_log(directory)
    os.truncate(log, log.stat().st_size // 2)


def cut_off_the_end(directory: Path) -> None:
    log = first_log(directory)
    os.truncate(log, batches(log)[-1])


def lose_a_batch_between_segments(directory: Path) -> None:
    log = first_log(directory)
    content = log.read_bytes()
    found = list(batch_headers(content))
    (lost_at, _), (next_at, following) = found[len(found) // 2 : len(found) // 2 + 2]
    log.with_name(f"{following.base_offset:020d}.log").write_bytes(content[next_at:])
    os.truncate(log, lost_at)


def empty(directory: Path) -> None:
    os.truncate(first_log(directory), 0)


def zero(directory: Path) -> None:
    log = first_log(directory)
    change(log, 0, bytes(log.stat().st_size))


def garble_the_middle(directory: Path) -> None:
    log = first_log(directory)
    size = log.stat().st_size
    change(log, size // 2 - 50, b"\xa5" * 100)


def flip_a_bit_of_a_record(directory: Path) -> None:
    log = first_log(directory)
    content = log.read_bytes()
    at = batches(log)[len(batches(log)) // 2] + 65
    change(log, at, bytes([content[at] ^ 1]))


def flip_a_bit_of_a_crc(directory: Path) -> None:
    log = first_log(directory)
    content = log.read_bytes()
    at = batches(log)[2] + 17
    change(log, at, bytes([content[at] ^ 0x80]))


def append_record(directory: Path, value: bytes) -> None:
    """Append a record that is valid in every other way."""
    log = max(directory.glob("*.log"))
    headers = [header for _, header in batch_headers(log.read_bytes())]
    last = headers[-1]
    batch = build_batch(
        [(int(time.time() * 1000), None, value, ())],
        base_offset=last.last_offset + 1,
        leader_epoch=last.leader_epoch,
    )
    with log.open("ab") as file:
        file.write(batch)


def add_an_unknown_version(directory: Path) -> None:
    # Frame version 1, type 2 (a topic), version 99.
    append_record(directory, b"\x01\x02\x63")


def add_an_unknown_type(directory: Path) -> None:
    append_record(directory, b"\x01\x7f\x00")


def remove_the_snapshot(directory: Path) -> None:
    for path in directory.glob("*.checkpoint"):
        path.unlink()


def garble_the_snapshot(directory: Path) -> None:
    snapshot = newest_snapshot(directory)
    change(snapshot, snapshot.stat().st_size // 2, b"\xa5" * 8)


def truncate_the_snapshot(directory: Path) -> None:
    snapshot = newest_snapshot(directory)
    os.truncate(snapshot, snapshot.stat().st_size // 2)


def remove_the_log(directory: Path) -> None:
    for path in directory.glob("*.log"):
        path.unlink()


def forbid_reading(directory: Path) -> None:
    first_log(directory).chmod(0)


def replace_by_a_directory(directory: Path) -> None:
    log = first_log(directory)
    log.unlink()
    log.mkdir()


def garble_the_vote(directory: Path) -> None:
    (directory / "quorum-state").write_bytes(b"\x00" * 100)


class Damage(NamedTuple):
    act: Callable[[Path], None]
    message: str
    snapshots: bool = False


LOG = r"\d{20}\.log is damaged at byte \d+: .+" + RESTORE
SNAPSHOT = r"\d{20}-\d{10}\.checkpoint: .+" + RESTORE
DAMAGE = {
    "truncated": Damage(truncate, LOG),
    "cut off the end": Damage(cut_off_the_end, LOG),
    "empty": Damage(empty, LOG),
    "zeroed": Damage(zero, LOG),
    "garbled in the middle": Damage(garble_the_middle, LOG),
    "one bit of a record": Damage(flip_a_bit_of_a_record, LOG),
    "one bit of a CRC": Damage(flip_a_bit_of_a_crc, LOG),
    "unknown version": Damage(add_an_unknown_version, LOG),
    "unknown type": Damage(add_an_unknown_type, LOG),
    "no log": Damage(remove_the_log, "__cluster_metadata-0 is damaged .+" + RESTORE),
    "unreadable": Damage(forbid_reading, r"\d{20}\.log: Permission denied; give the broker's user"),
    "a directory": Damage(replace_by_a_directory, r"__cluster_metadata-0.+"),
    "no snapshot": Damage(
        remove_the_snapshot, r"the log starts at offset \d+, .* no snapshot" + RESTORE, True
    ),
    "garbled snapshot": Damage(garble_the_snapshot, SNAPSHOT, True),
    "truncated snapshot": Damage(truncate_the_snapshot, SNAPSHOT, True),
    "a gap between segments": Damage(lose_a_batch_between_segments, "records from offset .+" + RESTORE),
    "garbled vote": Damage(garble_the_vote, r"quorum-state: content is not JSON" + RESTORE),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """Two directories of brokers that were stopped cleanly: without and with snapshots."""
    return {
        snapshots: made(tmp_path_factory.mktemp("good"), WITH_SNAPSHOTS if snapshots else {})
        for snapshots in (False, True)
    }


def made(root: Path, settings: dict[str, object]) -> Path:
    with Victim(root, settings=settings) as victim:
        with WireClient(victim.address) as client:
            for number in range(TOPICS):
                request = CreateTopicsRequest(topics=[new_topic(f"t{number}", 1, {})], timeout_ms=10_000)
                went_well(client.ask(request, 5).topics[0])
                time.sleep(0.3 if settings else 0)
        victim.check()
    return victim.logs


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_metadata_is_reported_with_one_clear_message(
    damage: str, good: dict[bool, Path], tmp_path: Path
) -> None:
    case = DAMAGE[damage]
    logs = tmp_path / "logs"
    shutil.copytree(good[case.snapshots], logs)
    metadata = logs / "__cluster_metadata-0"
    case.act(metadata)
    before = {path.name: path.stat().st_size for path in metadata.iterdir()}

    command = [
        sys.executable,
        "-m",
        "barnabas.cli.main",
        "up",
        "--dir",
        str(logs),
        "--port",
        str(free_port()),
    ]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=END_TIMEOUT_S, preexec_fn=be_no_superuser
    )

    assert ended.returncode == 1, ended.stderr
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr, ended.stderr
    assert re.search(f"cannot read the cluster metadata: .*{case.message}", ended.stderr), ended.stderr
    assert str(metadata) in ended.stderr
    # Nothing was cut off that a backup or an expert may need. The leader's first record may have been added.
    for path in (*metadata.glob("*.log"), *metadata.glob("*.checkpoint")):
        assert path.stat().st_size >= before.pop(path.name), path
    assert not [name for name in before if name.endswith((".log", ".checkpoint"))]


def be_no_superuser() -> None:
    """Let permissions count for root, too: drop CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
