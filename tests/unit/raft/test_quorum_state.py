"""The file quorum-state."""

from random import Random

import pytest

from barnabas.raft.facts import Election
from barnabas.raft.quorum_state import (
    format_quorum_state,
    parse_quorum_state,
    read_quorum_state,
    write_quorum_state,
)
from barnabas.sim.disk import SimDisk
from barnabas.storage.errors import CorruptFile
from support.kafka.sample import sample_files

KAFKAS = sample_files()["__cluster_metadata-0/quorum-state"]


def test_the_file_equals_kafkas_byte_for_byte() -> None:
    assert parse_quorum_state(KAFKAS, "x") == Election(1, 1, None)
    assert format_quorum_state(Election(1, 1, None), [1]) == KAFKAS


@pytest.mark.parametrize("election", [Election(), Election(7, None, 3), Election(2**31 - 1, 5, None)])
def test_a_written_state_is_read_back(election: Election) -> None:
    disk = SimDisk(Random(0))
    disk.make_directory("/d")

    assert read_quorum_state(disk, "/d") is None
    write_quorum_state(disk, "/d", election, [3, 1, 2])

    assert read_quorum_state(disk, "/d") == election


def test_the_file_of_a_cluster_with_voters_in_the_log_can_be_read() -> None:
    content = (
        b'{"leaderId":-1,"leaderEpoch":3,"votedId":2,'
        b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )

    assert parse_quorum_state(content, "x") == Election(3, None, 2)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 30_000,
        KAFKAS[:-1],
        KAFKAS.replace(b'"data_version":0', b'"data_version":2'),
        KAFKAS.replace(b'"leaderEpoch":1', b'"leaderEpoch":-1'),
        KAFKAS.replace(b'"leaderEpoch":1', b'"leaderEpoch":2147483648'),
        KAFKAS.replace(b'"leaderEpoch":1', b'"leaderEpoch":true'),
        KAFKAS.replace(b'"votedId":-1', b'"votedId":"1"'),
        KAFKAS.replace(b'"leaderId":1', b'"leaderId":-2'),
        KAFKAS + b" " * 70_000,
    ],
)
def test_anything_else_is_one_declared_error(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        parse_quorum_state(content, "x")
