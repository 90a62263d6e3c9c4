"""Members of the new protocol (KIP-848): heartbeats, and what is assigned is reported. See groups_load.py.

There are as many partitions as members, so a group is stable when each has reported the one that it is left
with, and the broker has answered that.
"""

from collections.abc import Sequence
from struct import Struct

from barnabas.base.ids import Uuid
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import decode_response
from barnabas.protocol.messages.cluster import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatTopicPartitions,
)
from groups_load import Group, Line, Turn, close_all, disband, frame_of, opened, stabilise
from support.wire.client import WireClient

VERSION = 1
METADATA_VERSION = 12
REBALANCE_MS = 300_000
LEAVING = -1
# Nothing else in a frame looks like this.
_EPOCH_MARK = 0x5A5B5C5D
_EPOCH = Struct(">i")
# A correlation id, no tagged fields, a throttle time, an error, a message.
_START = Struct(">5x4xhB")
_NO_ASSIGNMENT = b"\xff"


class ConsumerGroup(Group):
    """`topic` has as many partitions as there are members."""

    def __init__(self, name: str, size: int, topic: str, topic_id: Uuid) -> None:
        super().__init__(name, size)
        self.topic = topic
        self.topic_id = topic_id
        self._ready = 0

    def ready(self, change: int) -> None:
        self._ready += change
        if self._ready == self.size:
            self.now_stable()


class ConsumerMember(Line):
    def __init__(self, group: ConsumerGroup, member_id: str) -> None:
        super().__init__()
        self._group = group
        self.id = member_id
        self._epoch = 0
        self._owned: Sequence[int] = ()
        self._is_ready = False
        # Whether what it owns has not been told yet, and whether that was in the last heartbeat.
        self._to_report = False
        self._reported = False
        plain = self._request(member_epoch=_EPOCH_MARK)
        self._plain = bytearray(frame_of(plain, VERSION, ApiKey.CONSUMER_GROUP_HEARTBEAT))
        self._epoch_at = self._plain.index(_EPOCH.pack(_EPOCH_MARK))
        # In an answer, the member's id comes after an empty message; then epoch and interval.
        self._assigned_at = _START.size + 1 + len(member_id.encode()) + 8
        self._joins = True

    def _request(self, **chosen: object) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group.name,
            member_id=self.id,
            **chosen,  # type: ignore[arg-type]
        )

    def join(self) -> None:
        request = self._request(
            member_epoch=0,
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=[self._group.topic],
            topic_partitions=[],
        )
        self.send(frame_of(request, VERSION, ApiKey.CONSUMER_GROUP_HEARTBEAT))

    def answered(self, answer: bytes) -> None:
        error, _ = _START.unpack_from(answer)
        if self._epoch == LEAVING:
            # Before the last one came what it had asked for when it was told to leave.
            if self.in_flight == 0:
                self._group.one_left()
            return
        if error:
            _, body = decode_response(answer, VERSION, key=ApiKey.CONSUMER_GROUP_HEARTBEAT)
            self._group.refused(f"{ErrorCode(error).name}: {body.error_message}")
            return
        (self._epoch,) = _EPOCH.unpack_from(answer, self._assigned_at - 8)
        if answer[self._assigned_at : self._assigned_at + 1] != _NO_ASSIGNMENT:
            self._take(answer)
        elif self._reported:
            self._set_ready(len(self._owned) == 1)
        self.beat()

    def _take(self, answer: bytes) -> None:
        _, body = decode_response(answer, VERSION, key=ApiKey.CONSUMER_GROUP_HEARTBEAT)
        owned = [where for topic in body.assignment.topic_partitions for where in topic.partitions]
        if self._joins or owned != self._owned:
            self._joins = False
            self._owned = owned
            self._to_report = True
            self._set_ready(False)
        elif self._reported:
            # Told again, which is as good as not at all.
            self._set_ready(len(owned) == 1)

    def _set_ready(self, is_ready: bool) -> None:
        if is_ready is not self._is_ready:
            self._is_ready = is_ready
            self._group.ready(1 if is_ready else -1)

    def beat(self) -> None:
        if self._group.is_ending:
            return
        if self._to_report:
            self._to_report, self._reported = False, True
            held = ConsumerGroupHeartbeatTopicPartitions(
                topic_id=self._group.topic_id, partitions=list(self._owned)
            )
            request = self._request(
                member_epoch=self._epoch,
                rebalance_timeout_ms=REBALANCE_MS,
                subscribed_topic_names=[self._group.topic],
                topic_partitions=[held] if self._owned else [],
            )
            self.send(frame_of(request, VERSION, ApiKey.CONSUMER_GROUP_HEARTBEAT))
            return
        _EPOCH.pack_into(self._plain, self._epoch_at, self._epoch)
        self.send(bytes(self._plain))

    def leave(self) -> None:
        self._epoch = LEAVING
        _EPOCH.pack_into(self._plain, self._epoch_at, LEAVING)
        self.send(bytes(self._plain))


def topic_id(address: str, topic: str) -> Uuid:
    with WireClient(address) as client:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        [found] = client.ask(asked, METADATA_VERSION).topics
    assert found.error_code == 0, ErrorCode(found.error_code).name
    return found.topic_id  # type: ignore[no-any-return]


async def consumer_rebalance(address: str, name: str, size: int, topic: str, *, stay: bool = False) -> Turn:
    """From the first heartbeat of a new group to all stable. Then all leave, or, with `stay`, only the
    connections are closed, and the members idle."""
    group = ConsumerGroup(name, size, topic, topic_id(address, topic))
    numbers = iter(range(size))
    members = await opened(address, lambda: ConsumerMember(group, f"{name}-{next(numbers):06d}"), size)
    try:
        turn = await stabilise(group, members)
        if not stay:
            await disband(group, members)
        return turn
    finally:
        close_all(members)
