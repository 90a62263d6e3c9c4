"""The file `quorum-state` in the log's directory: epoch, leader and vote, which must survive a restart.

One line of JSON. Version 0 is for static voters; it is written here byte for byte as Kafka does. Version 1,
for dynamic voters, can be read: it has fewer fields.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

from barnabas.raft.facts import NONE, Election
from barnabas.storage.errors import CorruptFile
from barnabas.storage.files import FileSystem, write_atomically

QUORUM_STATE: Final = "quorum-state"

_VERSION: Final = 0
_VERSIONS: Final = (0, 1)
_INT32: Final = range(NONE, 2**31)
# A thousand voters take less. A larger file is rejected without parsing.
_SIZE_MAX: Final = 64 * 1024


def read_quorum_state(fs: FileSystem, directory: str) -> Election | None:
    """Read the file; None if it does not exist; CorruptFile if it is invalid."""
    path = f"{directory}/{QUORUM_STATE}"
    try:
        content = fs.read(path)
    except FileNotFoundError:
        return None
    return parse_quorum_state(content, path)


def write_quorum_state(fs: FileSystem, directory: str, election: Election, voters: Iterable[int]) -> None:
    """Write the file durably. For the executor."""
    write_atomically(fs, f"{directory}/{QUORUM_STATE}", format_quorum_state(election, voters))


def format_quorum_state(election: Election, voters: Iterable[int]) -> bytes:
    # As in Kafka, cluster id and applied offset are not used.
    state = {
        "clusterId": "",
        "leaderId": NONE if election.leader is None else election.leader,
        "leaderEpoch": election.epoch,
        "votedId": NONE if election.voted is None else election.voted,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": voter} for voter in sorted(voters)],
        "data_version": _VERSION,
    }
    return json.dumps(state, separators=(",", ":")).encode()


def parse_quorum_state(content: bytes, path: str) -> Election:
    if len(content) > _SIZE_MAX:
        raise CorruptFile(path, f"file size {len(content)} exceeds the limit of {_SIZE_MAX} bytes")
    try:
        state = json.loads(content)
    except (ValueError, RecursionError):
        raise CorruptFile(path, "content is not JSON") from None
    if not isinstance(state, dict):
        raise CorruptFile(path, "content is not a JSON object")
    version = state.get("data_version")
    if type(version) is not int or version not in _VERSIONS:
        raise CorruptFile(path, f"data_version is {version!r}, expected 0 or 1")
    # A node that has seen no epoch writes no file, so 0 is the minimum.
    epoch = _number(state, "leaderEpoch", path)
    if epoch < 0:
        raise CorruptFile(path, f"leaderEpoch {epoch} is negative")
    leader, voted = _number(state, "leaderId", path), _number(state, "votedId", path)
    return Election(epoch, None if leader == NONE else leader, None if voted == NONE else voted)


def _number(state: dict[str, Any], name: str, path: str) -> int:
    value = state.get(name)
    if type(value) is not int or value not in _INT32:
        raise CorruptFile(path, f"{name} is {value!r}, expected an integer of {NONE} or more")
    return value
