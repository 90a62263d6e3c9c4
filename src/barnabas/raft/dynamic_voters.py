"""Detect a metadata log with dynamic voters (KIP-853), which are in the log instead of the configuration.

Kafka creates such a log with `kafka-storage.sh format --standalone`, and converts an older one when
kraft.version is raised. Barnabas supports only a static set of voters: its snapshots of such a log would lack
the voters, and Kafka would have an empty quorum afterwards. So this check comes before anything is changed.
"""

import json
from collections.abc import Iterator
from typing import Final

from barnabas.base.errors import Malformed
from barnabas.raft.errors import RaftError, metadata_failed
from barnabas.raft.facts import METADATA
from barnabas.raft.quorum_state import QUORUM_STATE
from barnabas.raft.snapshots import list_snapshots, snapshot_name
from barnabas.records.control import ControlType, read_control_type
from barnabas.records.decode import decode_batch
from barnabas.records.header import HEADER_SIZE, LENGTH_EXCLUDES, MIN_BATCH_LENGTH, BatchHeader, read_header
from barnabas.storage.files import FileSystem
from barnabas.storage.names import LOG, directory_name, split_name

_DYNAMIC_STATE: Final = 1
_VOTER_RECORDS: Final = (ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS)
# Headers are read in pieces of this size. A control batch with voters is far smaller.
_PIECE_BYTES: Final = 256 * 1024


class DynamicVoters(RaftError):
    """The quorum has dynamic voters, which are not supported."""

    def __init__(self, directory: str, source: str) -> None:
        super().__init__(
            f"{directory} has dynamic voters (kraft.version 1 in {source}), but only static voters are "
            "supported; use a directory formatted with controller.quorum.voters"
        )
        self.directory = directory


def check_voters_are_fixed(fs: FileSystem, parent: str) -> None:
    """DynamicVoters if the metadata log in the log directory `parent` has dynamic voters. Read-only.

    MetadataUnreadable if its files cannot be read.
    """
    directory = f"{parent}/{directory_name(METADATA)}"
    try:
        _check(fs, parent, directory)
    except OSError as error:
        raise metadata_failed(directory, error) from error


def _check(fs: FileSystem, parent: str, directory: str) -> None:
    try:
        names = [entry.name for entry in fs.entries(directory)]
    except FileNotFoundError:
        return
    if QUORUM_STATE in names and _state_version(fs.read(f"{directory}/{QUORUM_STATE}")) == _DYNAMIC_STATE:
        raise DynamicVoters(parent, QUORUM_STATE)
    # The newest snapshot includes everything before it, so check it and the log after it.
    newest = max(list_snapshots(fs, directory), default=None)
    if newest is not None:
        name = snapshot_name(newest)
        if _has_voter_batch(fs.read(f"{directory}/{name}")):
            raise DynamicVoters(parent, name)
    for name in _segments(names, from_offset=0 if newest is None else newest.offset):
        if any(_has_voter_batch(piece) for piece in _pieces(fs, f"{directory}/{name}")):
            raise DynamicVoters(parent, name)


def _state_version(content: bytes) -> object:
    try:
        state = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return state.get("data_version") if isinstance(state, dict) else None


def _segments(names: list[str], *, from_offset: int) -> list[str]:
    """The files of the log from an offset on, in order."""
    found = sorted((split[0], name) for name in names if (split := split_name(name)) and split[1] == LOG)
    following = [base for base, _ in found[1:]]
    last = len(found) - 1
    return [name for at, (_, name) in enumerate(found) if at == last or following[at] > from_offset]


def _pieces(fs: FileSystem, path: str) -> Iterator[bytes]:
    """A segment in pieces that each begin with a batch. Recovery will report damage, not this check."""
    file = fs.open(path)
    try:
        at = 0
        while len(piece := file.read(at, _PIECE_BYTES)) >= HEADER_SIZE:
            yield piece
            step = _complete_bytes(piece)
            if step == 0:
                return
            at += step
    finally:
        file.close()


def _complete_bytes(piece: bytes) -> int:
    """The position of the first incomplete batch in the piece; 0 if unknown."""
    at = 0
    while len(piece) - at >= HEADER_SIZE:
        length = int.from_bytes(piece[at + 8 : at + LENGTH_EXCLUDES], "big", signed=True)
        if length < MIN_BATCH_LENGTH:
            return 0
        size = LENGTH_EXCLUDES + length
        if at + size > len(piece):
            # Skip a batch that is larger than a piece: it is not a control batch.
            return at or size
        at += size
    return at


def _has_voter_batch(data: bytes) -> bool:
    return any(header.is_control and _has_voter_record(data, at) for at, header in _whole(data))


def _has_voter_record(data: bytes, at: int) -> bool:
    try:
        return any(read_control_type(record.key) in _VOTER_RECORDS for record in decode_batch(data, at))
    except Malformed:
        return False


def _whole(data: bytes) -> Iterator[tuple[int, BatchHeader]]:
    at = 0
    while len(data) - at >= HEADER_SIZE:
        try:
            header = read_header(data, at)
        except Malformed:
            return
        if at + header.size > len(data):
            return
        yield at, header
        at += header.size
