"""Members of the classic protocol: join, sync when told, and the leader assigns. See groups_load.py.

Versions that librdkafka speaks, whose answers have every number at a place that is easily found.
"""

from struct import Struct

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from groups_load import Group, Line, Turn, close_all, disband, frame_of, opened, stabilise

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION = 5, 3, 3, 3
SESSION_MS = 45_000
REBALANCE_MS = 300_000
# About what clients send: a version, one topic of a dozen letters, no user data; and one partition of it.
METADATA = b"\x00\x01\x00\x00\x00\x01\x00\x0cbench-topics\xff\xff\xff\xff"
ASSIGNMENT = b"\x00\x01\x00\x00\x00\x01\x00\x0cbench-topics\x00\x00\x00\x01\x00\x00\x00\x07\xff\xff\xff\xff"
# A correlation id, a throttle time, an error; and, of a join, the generation.
_ERROR = Struct(">8xh")
_JOINED = Struct(">8xhi")
_LENGTH = Struct(">h")
_COUNT = Struct(">i")
_REJOIN = {
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
}


class ClassicGroup(Group):
    """Stable when as many have their assignment as the leader saw, and it saw all."""

    def __init__(self, name: str, size: int, session_ms: int = SESSION_MS) -> None:
        super().__init__(name, size)
        self.session_ms = session_ms
        self.whole_generation = -1
        self._synced: dict[int, int] = {}
        self.first_join = frame_of(self.join_request(""), JOIN_VERSION, ApiKey.JOIN_GROUP)

    def join_request(self, member_id: str) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.name,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=METADATA)],
        )

    def synced(self, generation: int) -> None:
        count = self._synced[generation] = self._synced.get(generation, 0) + 1
        if count == self.size and generation == self.whole_generation:
            self.now_stable()


class ClassicMember(Line):
    def __init__(self, group: ClassicGroup) -> None:
        super().__init__()
        self._group = group
        self.id = ""
        self._generation = -1
        self._join = group.first_join
        self._heartbeat = b""
        self._next = self._joined

    def join(self) -> None:
        self._next = self._joined
        self.send(self._join)

    def answered(self, answer: bytes) -> None:
        self._next(answer)

    def _joined(self, answer: bytes) -> None:
        error, self._generation = _JOINED.unpack_from(answer)
        _, at = _string(answer, _JOINED.size)
        leader, at = _string(answer, at)
        member_id, at = _string(answer, at)
        if error == ErrorCode.MEMBER_ID_REQUIRED:
            self.id = member_id
            self._join = frame_of(self._group.join_request(member_id), JOIN_VERSION, ApiKey.JOIN_GROUP)
            self.join()
        elif error:
            self._refused("join", error)
        else:
            self._sync(_members(answer, at) if leader == member_id else [])

    def _sync(self, members: list[str]) -> None:
        if len(members) == self._group.size:
            self._group.whole_generation = self._generation
        request = SyncGroupRequest(
            group_id=self._group.name,
            generation_id=self._generation,
            member_id=self.id,
            assignments=[SyncGroupRequestAssignment(member_id=one, assignment=ASSIGNMENT) for one in members],
        )
        self._next = self._synced
        self.send(frame_of(request, SYNC_VERSION, ApiKey.SYNC_GROUP))

    def _synced(self, answer: bytes) -> None:
        (error,) = _ERROR.unpack_from(answer)
        if error:
            self._refused("sync", error)
            return
        self._group.synced(self._generation)
        request = HeartbeatRequest(
            group_id=self._group.name, generation_id=self._generation, member_id=self.id
        )
        self._heartbeat = frame_of(request, HEARTBEAT_VERSION, ApiKey.HEARTBEAT)
        self._next = self._heard
        self._beat()

    def _beat(self) -> None:
        if not self._group.is_ending:
            self.send(self._heartbeat)

    def _heard(self, answer: bytes) -> None:
        (error,) = _ERROR.unpack_from(answer)
        if error:
            self._refused("heartbeat", error)
        else:
            self._beat()

    def _refused(self, what: str, error: int) -> None:
        if self._group.is_ending:
            return
        if error in _REJOIN:
            self.join()
        else:
            self._group.refused(f"{what}: {ErrorCode(error).name}")

    def leave(self) -> None:
        """Said for everybody by leave_for()."""

    def leave_for(self, members: "list[ClassicMember]") -> None:
        """One request takes everybody out."""
        request = LeaveGroupRequest(
            group_id=self._group.name, members=[MemberIdentity(member_id=member.id) for member in members]
        )
        self._next = self._left
        self.send(frame_of(request, LEAVE_VERSION, ApiKey.LEAVE_GROUP))

    def _left(self, answer: bytes) -> None:
        # Before the last one came what it had asked for when it was told to leave.
        if self.in_flight == 0:
            self._group.one_left(self._group.size)


def _string(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _LENGTH.unpack_from(data, at)
    begin = at + _LENGTH.size
    end = begin + max(0, length)
    return data[begin:end].decode(), end


def _members(data: bytes, at: int) -> list[str]:
    """The ids of a leader's answer; instance ids and metadata are skipped."""
    (count,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    found = []
    for _ in range(count):
        member_id, at = _string(data, at)
        _, at = _string(data, at)
        (length,) = _COUNT.unpack_from(data, at)
        at += _COUNT.size + length
        found.append(member_id)
    return found


async def classic_rebalance(address: str, name: str, size: int) -> Turn:
    """From the first join of a new group to all stable; then all leave."""
    group = ClassicGroup(name, size)
    members = await opened(address, lambda: ClassicMember(group), size)
    try:
        turn = await stabilise(group, members)
        members[0].leave_for(members)
        await disband(group, members)
        return turn
    finally:
        close_all(members)


async def idle_classic_members(address: str, name: str, size: int, session_ms: int) -> None:
    """A stable group whose members then say nothing any more, and have no connections."""
    group = ClassicGroup(name, size, session_ms)
    members = await opened(address, lambda: ClassicMember(group), size)
    try:
        await stabilise(group, members)
    finally:
        close_all(members)
