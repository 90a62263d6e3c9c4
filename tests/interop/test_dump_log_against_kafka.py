"""Kafka's own dump tool, run beside ours: on the damaged files, on all of the sample, on every stored record.

Needs Java and Maven, and takes the published jars from Maven's store or the network; `make interop` runs it.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.schema.struct import schema_of
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, control_key
from support.kafka.sample import sample_files
from support.kafka.tools import kafka_tools
from support.kafka.vectors import read_vectors
from support.log.dump_answers import CASES, WRITE, Answer, kafkas_answer, write_answers, written_answers
from support.wire.messages import MESSAGES

DECODERS = {
    "--offsets-decoder": ("offsets", "consumer_groups", "share_groups", "streams_groups"),
    "--transaction-log-decoder": ("transactions",),
    "--share-group-state-decoder": ("share_state",),
    "--cluster-metadata-decoder": ("cluster_topics", "cluster_nodes", "cluster_access"),
}


def ours(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "barnabas", "dump-log", *args]
    return subprocess.run(command, capture_output=True, check=False, encoding="utf-8")


def test_kafka_still_gives_the_recorded_answers(tmp_path: Path) -> None:
    tools = kafka_tools()
    answers: dict[str, Answer] = {}

    for number, case in enumerate(CASES.values()):
        directory = tmp_path / str(number)
        directory.mkdir()
        answers[case.name] = kafkas_answer(tools, case, directory)

    if WRITE:
        write_answers(answers)
    assert answers == written_answers()


@pytest.mark.parametrize(
    "flags", [(), ("--print-data-log",), ("--index-sanity-check",), ("--verify-index-only",)]
)
def test_every_file_of_the_sample_is_dumped_as_kafka_does_it(flags: tuple[str, ...], tmp_path: Path) -> None:
    tools = kafka_tools()
    paths = []
    for name, data in sample_files().items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        paths.append(str(path))

    kafkas = tools.dump_log(*flags, "--files", ",".join(paths))
    mine = ours(*flags, "--files", ",".join(paths))

    assert mine.stdout == kafkas.stdout
    # The files come in another order there.
    assert sorted(mine.stderr.splitlines()) == sorted(kafkas.stderr.splitlines())
    assert (mine.returncode, kafkas.returncode) == (0, 0)


@pytest.mark.parametrize("flag", DECODERS)
def test_every_stored_record_is_shown_as_kafka_shows_it(flag: str, tmp_path: Path) -> None:
    tools = kafka_tools()
    records = list(stored_records(DECODERS[flag]))
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(build_batch([(1, key, value, ()) for key, value in records]))

    kafkas = tools.dump_log(flag, "--files", str(log))
    mine = ours(flag, "--files", str(log))

    assert len(records) > 10
    assert mine.stdout == kafkas.stdout
    assert (mine.returncode, kafkas.returncode) == (0, 0)


def test_control_records_are_shown_as_kafka_shows_them(tmp_path: Path) -> None:
    tools = kafka_tools()
    names = {
        ControlType.LEADER_CHANGE: "LeaderChangeMessage",
        ControlType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
        ControlType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
        ControlType.KRAFT_VERSION: "KRaftVersionRecord",
        ControlType.KRAFT_VOTERS: "VotersRecord",
    }
    # These say their version in their first field, which is any number in the vectors.
    records = [
        (1, control_key(kind), bytes(2) + bytes.fromhex(vector["hex"])[2:], ())
        for kind, name in names.items()
        for vector in read_vectors()[name][0]
    ]
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(build_batch(records, control=True))

    kafkas = tools.dump_log("--deep-iteration", "--files", str(log))

    assert ours("--deep-iteration", "--files", str(log)).stdout == kafkas.stdout
    assert kafkas.returncode == 0


def stored_records(modules: tuple[str, ...]) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Keys and values as bytes that Kafka's codec wrote: each value with a key of its type."""
    vectors = read_vectors()
    keys: dict[int, bytes] = {}
    names = [f"barnabas.protocol.stored.{module}" for module in modules]
    classes = [cls for cls in MESSAGES.values() if cls.__module__ in names]
    for cls in sorted(classes, key=lambda cls: schema_of(cls).kind):
        schema = schema_of(cls)
        kind = schema.key
        assert kind is not None
        for vector in all_vectors(vectors[cls.__name__]):
            body = bytes.fromhex(vector["hex"])
            if schema.kind == "metadata":
                yield None, bytes([1, kind, vector["version"]]) + body
            elif schema.kind == "key":
                keys[kind] = kind.to_bytes(2, "big") + body
                yield keys[kind], None
            elif vector["version"] in schema.versions:
                yield keys[kind], vector["version"].to_bytes(2, "big") + body


def all_vectors(by_version: dict[int, list[Any]]) -> Iterator[Any]:
    for vectors in by_version.values():
        yield from vectors
