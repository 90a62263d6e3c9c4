"""Groups over the simulated wire: a member that speaks in sentences, in either protocol."""

from typing import Any

from barnabas.base.ids import Uuid
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatTopicPartitions,
)
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.server.broker import Broker
from support.stories import Client, connect
from support.wire.requests import went_well

SESSION_MS = 10_000
REBALANCE_MS = 60_000


async def find_coordinator(client: Client, group: str) -> int:
    """Its node; the offsets topic is made for it."""
    answer = await client.asked(FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), 4)
    return int(went_well(answer.coordinators[0]).node_id)


class ClassicMember:
    """One member with a connection of its own. What a request says is what the member knows."""

    def __init__(self, client: Client, group: str, *, instance_id: str | None = None) -> None:
        self.client = client
        self.group = group
        self.instance_id = instance_id
        self.id = ""
        self.generation = -1
        self.leader = ""
        self.members: list[str] = []
        self.assignment = b""

    @classmethod
    async def of(cls, broker: Broker, group: str, *, instance_id: str | None = None) -> "ClassicMember":
        client = await connect(broker)
        await find_coordinator(client, group)
        return cls(client, group, instance_id=instance_id)

    def join_request(self, metadata: bytes = b"topics") -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )

    async def join(self) -> ErrorCode:
        """Until the group has come together; the id that is asked for is taken."""
        answer = await self.client.asked(self.join_request(), 7)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.id = answer.member_id
            answer = await self.client.asked(self.join_request(), 7)
        if answer.error_code == ErrorCode.NONE:
            self.id, self.generation, self.leader = answer.member_id, answer.generation_id, answer.leader
            self.members = [one.member_id for one in answer.members]
        return ErrorCode(answer.error_code)

    async def sync(self, assignments: dict[str, bytes] | None = None) -> ErrorCode:
        answer = await self.client.asked(
            SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.id,
                group_instance_id=self.instance_id,
                assignments=[
                    SyncGroupRequestAssignment(member_id=one, assignment=what)
                    for one, what in (assignments or {}).items()
                ],
            ),
            3,
        )
        self.assignment = answer.assignment
        return ErrorCode(answer.error_code)

    async def heartbeat(self) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance_id,
        )
        return ErrorCode((await self.client.asked(request, 3)).error_code)

    async def leave(self) -> ErrorCode:
        who = MemberIdentity(member_id=self.id, group_instance_id=self.instance_id)
        answer = await self.client.asked(LeaveGroupRequest(group_id=self.group, members=[who]), 4)
        return ErrorCode(answer.error_code or answer.members[0].error_code)

    async def commit(self, topic: str, offset: int, partition: int = 0) -> ErrorCode:
        return await commit(
            self.client, self.group, topic, offset, partition, member=self.id, generation=self.generation
        )


async def commit(
    client: Client,
    group: str,
    topic: str,
    offset: int,
    partition: int = 0,
    *,
    member: str = "",
    generation: int = -1,
    note: str | None = "",
) -> ErrorCode:
    one = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=note
    )
    answer = await client.asked(
        OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[one])],
        ),
        8,
    )
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def committed(client: Client, group: str, topic: str | None = None, partition: int = 0) -> Any:
    """The offset of one partition, or of all that there are as {(topic, partition): offset}; or an error."""
    topics = None
    if topic is not None:
        topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
    answer = await client.asked(
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)]), 8
    )
    (found,) = answer.groups
    if found.error_code != ErrorCode.NONE:
        return ErrorCode(found.error_code)
    offsets = {
        (one.name, data.partition_index): data.committed_offset
        for one in found.topics
        for data in one.partitions
    }
    return offsets if topic is None else offsets[topic, partition]


class ConsumerMember:
    """A member of a group of KIP-848: it takes and gives up what it is told to, at once."""

    def __init__(self, client: Client, group: str, member_id: str, topics: list[str]) -> None:
        self.client = client
        self.group = group
        self.id = member_id
        self.topics = topics
        self.epoch = 0
        self.owned: dict[Uuid, list[int]] = {}
        self.heartbeat_interval_ms = 0

    @classmethod
    async def of(cls, broker: Broker, group: str, member_id: str, *topics: str) -> "ConsumerMember":
        client = await connect(broker)
        await find_coordinator(client, group)
        return cls(client, group, member_id, list(topics))

    async def heartbeat(self, epoch: int | None = None) -> ErrorCode:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.id, member_epoch=self.epoch if epoch is None else epoch
        )
        if request.member_epoch == 0:
            request.rebalance_timeout_ms = REBALANCE_MS
            request.subscribed_topic_names = self.topics
        if request.member_epoch >= 0:
            request.topic_partitions = [
                ConsumerGroupHeartbeatTopicPartitions(topic_id=topic, partitions=partitions)
                for topic, partitions in self.owned.items()
            ]
        answer = await self.client.asked(request, 1)
        if answer.error_code == ErrorCode.NONE:
            self.epoch = answer.member_epoch
            self.heartbeat_interval_ms = answer.heartbeat_interval_ms
            if answer.assignment is not None:
                self.owned = {one.topic_id: one.partitions for one in answer.assignment.topic_partitions}
        return ErrorCode(answer.error_code)

    @property
    def partitions(self) -> set[tuple[Uuid, int]]:
        return {(topic, one) for topic, some in self.owned.items() for one in some}
