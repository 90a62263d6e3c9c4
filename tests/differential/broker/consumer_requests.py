"""What is asked in the protocol of KIP-848: heartbeats, and members who do as they are told."""

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.base.ids import Uuid
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatTopicPartitions,
)
from barnabas.protocol.messages.group_admin import DeleteGroupsRequest
from differential.broker.talk import Talk

# A change is answered by what it leads to, not by what was before it.
AT_ONCE = {"group.initial.rebalance.delay.ms": 0, "group.consumer.assignment.interval.ms": 0}
IN_ORDER = {"group.consumer.assignor.offload.enable": "false"}
REBALANCE_MS = 60_000
LEAVE, LEAVE_FOR_A_WHILE = -1, -2

Owned = Mapping[Uuid, Sequence[int]]


def heartbeat(group: str, member_id: str, epoch: int, *, owned: Owned | None = None, **said: Any) -> Any:
    """What is not said is as before."""
    topics = None
    if owned is not None:
        topics = [
            ConsumerGroupHeartbeatTopicPartitions(topic_id=topic, partitions=list(indexes))
            for topic, indexes in owned.items()
        ]
    return ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=member_id, member_epoch=epoch, topic_partitions=topics, **said
    )


def comes(group: str, member_id: str, *topics: str, **said: Any) -> Any:
    """The first heartbeat."""
    whole: dict[str, Any] = {"rebalance_timeout_ms": REBALANCE_MS, "subscribed_topic_names": list(topics)}
    return heartbeat(group, member_id, 0, **{"owned": {}, **whole, **said})


def create(talk: Talk, name: str, partitions: int = 1) -> Uuid:
    """Create a topic and wait until it can be assigned: a coordinator hears of it after everybody else."""
    topic_id = talk.create(name, partitions)
    group = f"waits for {name}"
    joined = talk.until(comes(group, "m", name), 1, lambda answer: answer.error_code == 0)
    if not joined.assignment.topic_partitions:
        again = heartbeat(group, "m", joined.member_epoch)
        talk.until(again, 1, lambda answer: answer.assignment and answer.assignment.topic_partitions)
    talk.quietly(heartbeat(group, "m", LEAVE), 1)
    talk.quietly(DeleteGroupsRequest(groups_names=[group]), 2)
    return topic_id


class Consumer:
    """It takes and gives up what it is told to, and says so with its next heartbeat."""

    def __init__(self, talk: Talk, group: str, member_id: str, version: int = 1) -> None:
        self.talk = talk
        self.group = group
        self.id = member_id
        self.version = version
        self.epoch = 0
        self.owned: dict[Uuid, list[int]] = {}

    def join(self, step: str, *topics: str, **said: Any) -> Any:
        self.owned = {}
        return self.heard(self.talk.ask(step, comes(self.group, self.id, *topics, **said), self.version))

    def beat(self, step: str, **said: Any) -> Any:
        """With what it owns."""
        request = heartbeat(self.group, self.id, self.epoch, owned=self.owned, **said)
        return self.heard(self.talk.ask(step, request, self.version))

    def beat_quietly(self, step: str) -> Any:
        """With nothing but its epoch."""
        return self.heard(self.talk.ask(step, heartbeat(self.group, self.id, self.epoch), self.version))

    def leave(self, step: str, epoch: int = LEAVE, **said: Any) -> Any:
        return self.talk.ask(step, heartbeat(self.group, self.id, epoch, **said), self.version)

    def heard(self, answer: Any) -> Any:
        if answer is not None and answer.error_code == 0:
            self.id = answer.member_id or self.id
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = {one.topic_id: one.partitions for one in answer.assignment.topic_partitions}
        return answer

    def settled(self, **said: Any) -> None:
        """Wait, unseen, until it is assigned something."""

        def is_assigned(answer: Any) -> bool:
            self.heard(answer)
            return bool(self.owned)

        request = heartbeat(self.group, self.id, self.epoch, owned={}, **said)
        self.talk.until(request, self.version, is_assigned)
