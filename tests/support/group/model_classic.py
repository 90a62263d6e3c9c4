"""A client of the classic protocol, with a cooperative or an eager assignor of its own."""

from collections.abc import Iterable
from typing import Any

from barnabas.coordinators.decision.outcome import Caller
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from barnabas.protocol.stored.framing import decode_versioned, encode_value
from support.group.model import GroupWorld
from support.group.model_clients import (
    HOST,
    NO_SUCH_EPOCH,
    REBALANCE_MS,
    SESSION_MS,
    GroupClient,
    Place,
)


class ClassicClient(GroupClient):
    """Speaks the classic protocol, with a cooperative or an eager assignor."""

    def __init__(
        self,
        world: GroupWorld,
        group: str,
        name: str,
        *,
        topics: Iterable[str],
        instance_id: str | None = None,
        protocols: tuple[str, ...] = ("range",),
        protocol_type: str = "consumer",
        cooperative: bool = True,
        version: int = 9,
    ) -> None:
        super().__init__(world, group, name, topics, instance_id)
        self.protocols = protocols
        self.protocol_type = protocol_type
        self.cooperative = cooperative
        self.version = version if instance_id is None else max(version, 5)
        self.generation = -1
        # "out", "joining", "joined", "syncing", "in"
        self.phase = "out"
        self._joined = JoinGroupResponse()
        # What it was given.
        self.assignment = b""

    @property
    def epoch_or_generation(self) -> int:
        return self.generation

    @property
    def is_in(self) -> bool:
        return self.phase == "in"

    def starts_anew(self) -> None:
        super().starts_anew()
        self.phase, self.generation = "out", -1

    def turn(self) -> None:
        match self.phase:
            case "out":
                self.join()
            case "joined":
                self.sync()
            case "in":
                self.heartbeat()

    def ask_again(self) -> None:
        if self.phase == "syncing":
            self.sync()
        else:
            self.join()

    def subscribes(self, topics: Iterable[str], regex: str) -> None:
        """Members of the classic protocol resolve expressions themselves."""
        self.topics = sorted(topics)
        self.join()

    def join(self) -> None:
        group = self.world.shard.context.groups.get(self.group)
        was_expelled = isinstance(group, ConsumerGroup) and self.id not in group.members
        # By its own clock its session has ended as well.
        if was_expelled or not self.cooperative:
            self.owned = set()
        # What it does not read any more it lets go before it joins.
        topics = self.world.image.topics
        wanted = {topics[name].id for name in self.topics if name in topics}
        self.owned = {place for place in self.owned if place[0] in wanted}
        self.releasing = set()
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=one, metadata=self.metadata()) for one in self.protocols
            ],
        )
        caller = Caller(self.name, HOST, self.version)
        self.phase = "joining"
        self._ask("join", lambda to, now: self.world.shard.join(request, caller, to, now), self._take_join)

    def metadata(self) -> bytes:
        names = {topic.id: name for name, topic in self.world.image.topics.items()}
        owned: dict[str, list[int]] = {}
        for topic_id, partition in sorted(self.owned):
            if topic_id in names:
                owned.setdefault(names[topic_id], []).append(partition)
        said = ConsumerProtocolSubscription(
            topics=self.topics,
            user_data=None,
            owned_partitions=[
                ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=partitions)
                for topic, partitions in owned.items()
            ],
        )
        return encode_value(said, 1 if self.cooperative else 0)

    def _take_join(self, answer: Any) -> None:
        self.phase = "out"
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self._joined = answer
            self.id, self.generation, self.phase = answer.member_id, answer.generation_id, "joined"
        elif code is ErrorCode.MEMBER_ID_REQUIRED:
            self.id = answer.member_id
        else:
            self._is_out(code)

    def sync(self) -> None:
        self.phase = "syncing"
        assignments = self.decide() if self._leads() else {}
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance_id,
            protocol_type=self._joined.protocol_type,
            protocol_name=self._joined.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=one, assignment=part)
                for one, part in assignments.items()
            ],
        )
        caller = Caller(self.name, HOST, 5)
        self._ask("sync", lambda to, now: self.world.shard.sync(request, caller, to, now), self._take_sync)

    def _leads(self) -> bool:
        return self._joined.leader == self.id and not self._joined.skip_assignment

    def decide(self) -> dict[str, bytes]:
        """Each partition to one of those who read its topic, in turn; but who has one keeps it.

        Those who join with partitions go on reading them meanwhile. No real assignor would give those to
        others in the same round.
        """
        said = {
            one.member_id: decode_versioned(ConsumerProtocolSubscription, one.metadata)[0]
            for one in self._joined.members
        }
        owners = {
            (part.topic, partition): member_id
            for member_id, one in said.items()
            for part in one.owned_partitions
            for partition in part.partitions
        }
        given: dict[str, dict[str, list[int]]] = {one: {} for one in said}
        for name, topic in sorted(self.world.image.topics.items()):
            takers = [member_id for member_id, one in said.items() if name in one.topics]
            for partition in range(len(topic.partitions) if takers else 0):
                taker = owners.get((name, partition), takers[partition % len(takers)])
                given[taker].setdefault(name, []).append(partition)
        return {one: _assignment(parts) for one, parts in given.items()}

    def _take_sync(self, answer: Any) -> None:
        self.phase = "out"
        code = ErrorCode(answer.error_code)
        if code is not ErrorCode.NONE:
            self._is_out(code)
            return
        self.phase = "in"
        self.assignment = answer.assignment
        group = self.world.shard.context.groups.get(self.group)
        self.was_given_by_server = isinstance(group, ConsumerGroup)
        if self.protocol_type == "consumer":
            self._take(self._places(answer.assignment))

    def _places(self, assignment: bytes) -> set[Place]:
        if not assignment:
            return set()
        read, _ = decode_versioned(ConsumerProtocolAssignment, assignment)
        topics = self.world.image.topics
        return {
            (topics[one.topic].id, partition)
            for one in read.assigned_partitions
            if one.topic in topics
            for partition in one.partitions
        }

    def heartbeat(self, generation: int | None = None) -> None:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation if generation is None else generation,
            member_id=self.id,
            group_instance_id=self.instance_id,
        )
        caller = Caller(self.name, HOST, 4)
        self._ask(
            "heartbeat",
            lambda to, now: self.world.shard.heartbeat(request, caller, to, now),
            self._take_heartbeat,
        )

    def _take_heartbeat(self, answer: Any) -> None:
        code = ErrorCode(answer.error_code)
        if code not in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR):
            self.phase = "out"
            self._is_out(code)

    def leave(self) -> None:
        who = MemberIdentity(member_id=self.id, group_instance_id=self.instance_id)
        request = LeaveGroupRequest(group_id=self.group, members=[who])
        caller = Caller(self.name, HOST, 5)
        self._ask("leave", lambda to, now: self.world.shard.leave(request, caller, to, now), lambda _: None)
        self.starts_anew()

    def _is_out(self, code: ErrorCode) -> None:
        self._failed(code)
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.id = ""
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID):
            self._drop()


def classic_stranger(world: GroupWorld, group: str) -> ClassicClient:
    """It says that it is a member, and is not."""
    stranger = ClassicClient(world, group, "stranger", topics=["orders"])
    stranger.id, stranger.generation, stranger.phase = "nobody", NO_SUCH_EPOCH, "in"
    return stranger


def _assignment(parts: dict[str, list[int]]) -> bytes:
    given = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=partitions)
        for topic, partitions in parts.items()
    ]
    return encode_value(ConsumerProtocolAssignment(assigned_partitions=given, user_data=None), 1)
