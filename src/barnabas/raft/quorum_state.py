"""The file `quorum-state` beside the log: the epoch, the leader and the vote that a restart must not forget.

One line of JSON. Version 0 is for voters that are set by the configuration, and is what is written here, byte
for byte as Kafka writes it. Version 1, of clusters whose voters are in the log, can be read: it has fewer
fields.
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
# A thousand voters take less. More is no file of ours, and is not parsed.
_SIZE_MAX: Final = 64 * 1024


def read_quorum_state(fs: FileSystem, directory: str) -> Election | None:
    """What was written last, None if nothing ever was; CorruptFile for anything else."""
    path = f"{directory}/{QUORUM_STATE}"
    try:
        content = fs.read(path)
    except FileNotFoundError:
        return None
    return parse_quorum_state(content, path)


def write_quorum_state(fs: FileSystem, directory: str, election: Election, voters: Iterable[int]) -> None:
    """Put it on the disk. For the executor."""
    write_atomically(fs, f"{directory}/{QUORUM_STATE}", format_quorum_state(election, voters))


def format_quorum_state(election: Election, voters: Iterable[int]) -> bytes:
    # Nothing fills the cluster id and the applied offset, in Kafka neither.
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
        raise CorruptFile(path, f"it has {len(content)} bytes, and {_SIZE_MAX} is the limit")
    try:
        state = json.loads(content)
    except (ValueError, RecursionError):
        raise CorruptFile(path, "it is not JSON") from None
    if not isinstance(state, dict):
        raise CorruptFile(path, "it is not a JSON object")
    version = state.get("data_version")
    if type(version) is not int or version not in _VERSIONS:
        raise CorruptFile(path, f"data_version is {version!r}, known are 0 and 1")
    # A node that never saw an epoch has none to write, so 0 is the least.
    epoch = _number(state, "leaderEpoch", path)
    if epoch < 0:
        raise CorruptFile(path, f"leaderEpoch is {epoch}")
    leader, voted = _number(state, "leaderId", path), _number(state, "votedId", path)
    return Election(epoch, None if leader == NONE else leader, None if voted == NONE else voted)


def _number(state: dict[str, Any], name: str, path: str) -> int:
    value = state.get(name)
    if type(value) is not int or value not in _INT32:
        raise CorruptFile(path, f"{name} is {value!r}, not a number from {NONE} on")
    return value
