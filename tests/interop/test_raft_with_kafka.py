"""The metadata log and its snapshots, between Kafka 4.3 and Barnabas: each reads what the other wrote."""

from pathlib import Path

import pytest

from barnabas.protocol.stored.cluster_nodes import BeginTransactionRecord, EndTransactionRecord, NoOpRecord
from barnabas.protocol.stored.cluster_topics import ConfigRecord
from barnabas.raft.facts import OffsetAndEpoch
from barnabas.raft.quorum_state import format_quorum_state, read_quorum_state
from barnabas.raft.snapshots import (
    list_snapshots,
    read_bootstrap,
    read_snapshot,
    snapshot_batches,
    snapshot_name,
    write_bootstrap,
)
from barnabas.storage.disk import DiskFileSystem
from support.clients.stage import wait_until
from support.kafka.broker import KafkaBroker
from support.kafka.sample import sample_files
from support.kafka.tools import kafka_tools
from support.log.managers import on_a_loop
from support.quorums import Recorder, config, new_quorum, running

METADATA = "__cluster_metadata-0"


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """The metadata log and the bootstrap snapshot of a directory that Kafka wrote."""
    for name, content in sample_files().items():
        if name.startswith(METADATA) or name == "bootstrap.checkpoint":
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
    return tmp_path


@on_a_loop
async def takes_over(directory: Path) -> None:
    listener = Recorder()
    quorum = new_quorum(DiskFileSystem(), listener, directory=str(directory))
    async with running(quorum, listener) as epoch:
        assert epoch == 2
        # 472 offsets of Kafka's, and our leader change.
        assert (quorum.high_watermark, quorum.end_offset) == (473, 473)
        assert await quorum.append(epoch, [config(1)]) == 473
        await quorum.write_snapshot(quorum.delivered, listener.records)
    assert listener.story[-1] == "batch 473-473 epoch 2"
    # 471 records are Kafka's: the other offset is its leader change.
    assert len(listener.records) == 472


def test_kafkas_metadata_log_is_continued_in_the_next_epoch(sample: Path) -> None:
    takes_over(sample)

    directory = sample / METADATA
    assert (directory / "quorum-state").read_bytes() == sample_files()[f"{METADATA}/quorum-state"].replace(
        b'"leaderEpoch":1', b'"leaderEpoch":2'
    )
    assert (directory / "leader-epoch-checkpoint").read_text() == "0\n2\n1 0\n2 472\n"


def test_kafkas_tool_reads_the_log_that_was_taken_over(sample: Path) -> None:
    tools = kafka_tools()
    takes_over(sample)

    log = sample / METADATA / "00000000000000000000.log"
    done = tools.dump_log("--cluster-metadata-decoder", "--files", str(log))

    assert done.returncode == 0, done.stderr
    assert "isvalid: false" not in done.stdout
    change = [line for line in done.stdout.splitlines() if "LeaderChange" in line][-1]
    expected = '{"version":0,"leaderId":1,"voters":[{"voterId":1}],"grantingVoters":[{"voterId":1}]}'
    assert change.startswith("| offset: 472 ")
    assert change.endswith(expected)
    assert '"name":"n1","value":"v"' in done.stdout.splitlines()[-1]


def test_kafkas_tool_reads_our_snapshot(sample: Path) -> None:
    tools = kafka_tools()
    takes_over(sample)

    snapshot = sample / METADATA / snapshot_name(OffsetAndEpoch(474, 2))
    done = tools.dump_log("--cluster-metadata-decoder", "--files", str(snapshot))

    assert done.returncode == 0, done.stderr
    assert "Snapshot end offset: 474, epoch: 2" in done.stdout
    assert 'SnapshotHeader {"version":0,"lastContainedLogTimestamp":1000}' in done.stdout
    assert done.stdout.splitlines()[-1].endswith('SnapshotFooter {"version":0}')
    assert done.stdout.count("payload: ") == 472


def test_kafkas_bootstrap_snapshot_is_written_byte_for_byte(sample: Path, tmp_path: Path) -> None:
    fs = DiskFileSystem()
    records = read_bootstrap(fs, str(sample))
    assert records is not None
    ours = tmp_path / "ours"
    ours.mkdir()

    write_bootstrap(fs, str(ours), records, now_ms=1_794_709_942_218)

    written, kafkas = (
        (ours / "bootstrap.checkpoint").read_bytes(),
        (sample / "bootstrap.checkpoint").read_bytes(),
    )
    # The three batches of Kafka's were written at three moments. The first was at the one that we gave.
    assert (len(written), written[:83]) == (len(kafkas), kafkas[:83])


def test_a_snapshot_that_kafka_wrote_is_read_and_written_the_same(tmp_path: Path) -> None:
    # Kafka writes a snapshot as soon as there are so many bytes of records.
    settings = {"metadata.log.max.record.bytes.between.snapshots": 1000}
    broker = KafkaBroker(kafka_tools(), tmp_path, settings=settings)
    broker.format()
    fs = DiskFileSystem()
    directory = f"{broker.logs}/{METADATA}"
    with broker.running():
        wait_until(lambda: bool(list_snapshots(fs, directory)), "a snapshot of Kafka's", within_s=30)

    (snapshot_id,) = list(list_snapshots(fs, directory))[-1:]
    snapshot = read_snapshot(fs, f"{directory}/{snapshot_name(snapshot_id)}")
    records = [record for record, _ in snapshot.records()]
    ours = snapshot_batches(
        records, epoch=snapshot_id.epoch, last_contained_ms=snapshot.last_contained_ms, now_ms=1
    )

    assert ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1") in records
    assert sum(len(batch) for batch in ours) == len(snapshot.data)
    election = read_quorum_state(fs, directory)
    assert election is not None
    assert format_quorum_state(election, [1]) == Path(f"{directory}/quorum-state").read_bytes()


def test_kafka_starts_from_a_log_and_a_snapshot_that_we_wrote(tmp_path: Path) -> None:
    broker = KafkaBroker(kafka_tools(), tmp_path)
    broker.format()
    with broker.running():
        pass
    goes_on_with_a_snapshot(broker.logs)

    with broker.running():
        pass

    state = read_quorum_state(DiskFileSystem(), f"{broker.logs}/{METADATA}")
    assert state is not None
    assert state.epoch == 3


@on_a_loop
async def goes_on_with_a_snapshot(directory: Path) -> None:
    listener = Recorder()
    quorum = new_quorum(DiskFileSystem(), listener, directory=str(directory))
    async with running(quorum, listener) as epoch:
        assert epoch == 2
        # What is about the log and not about the cluster has no place in a snapshot.
        about_the_log = (NoOpRecord, BeginTransactionRecord, EndTransactionRecord)
        records = [record for record in listener.records if not isinstance(record, about_the_log)]
        await quorum.write_snapshot(quorum.delivered, records)
