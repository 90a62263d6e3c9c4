"""Consumer groups told as stories: members that act as clients do, in front of a whole shard.

A Consumer takes what it is given with the answer to its heartbeat, gives up what it is to give up, and says
with its next heartbeat what it has. The stage carries out what comes of it, see group_stories.py.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import Caller
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.settings import GroupSettings, GroupTimes
from barnabas.coordinators.group.shard import GroupShard
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionImage, TopicImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from support.group.stories import GROUP, HOST, Asked, Stage, decoded

# Assignments are computed whenever they may be: stories about the interval say so.
AT_ONCE = GroupSettings(times=GroupTimes(assignment_interval_ms=0))
REBALANCE_MS = 60_000
SESSION_MS = AT_ONCE.times.session_timeout_ms


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode().rjust(16, b"-")[-16:])


def image_of(topics: Mapping[str, int], *, offset: int = 1) -> MetadataImage:
    """A cluster that has these topics, with so many partitions each."""
    made = {name: _topic(name, partitions) for name, partitions in topics.items()}
    return replace(
        EMPTY_IMAGE, offset=offset, topics=made, topics_by_id={topic.id: topic for topic in made.values()}
    )


def _topic(name: str, partitions: int) -> TopicImage:
    partition = PartitionImage(
        replicas=(1,), directories=(topic_id("d"),), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0
    )
    return TopicImage(name, topic_id(name), (partition,) * partitions)


class Consumer:
    """A client of the consumer protocol: what it knows, and what it works on."""

    def __init__(
        self,
        member_id: str,
        *,
        topics: Iterable[str] | None = ("orders",),
        regex: str | None = None,
        instance_id: str | None = None,
        assignor: str | None = None,
    ) -> None:
        self.id = member_id
        self.instance_id = instance_id
        self.topics = None if topics is None else list(topics)
        self.regex = regex
        self.assignor = assignor
        self.epoch = 0
        self.owned: dict[Uuid, set[int]] = {}

    def partitions(self, topic: str = "orders") -> set[int]:
        return self.owned.get(topic_id(topic), set())

    def takes(self, response: ConsumerGroupHeartbeatResponse) -> None:
        assert response.error_code == 0, response
        self.id = response.member_id or self.id
        self.epoch = response.member_epoch
        if response.assignment is not None:
            given = response.assignment.topic_partitions
            self.owned = {topic.topic_id: set(topic.partitions) for topic in given}

    def says(self) -> list[ConsumerGroupHeartbeatTopicPartitions]:
        return [
            ConsumerGroupHeartbeatTopicPartitions(topic_id=topic, partitions=sorted(partitions))
            for topic, partitions in self.owned.items()
        ]


class ConsumerStory:
    """One group of a shard, and its members."""

    def __init__(
        self,
        settings: GroupSettings = AT_ONCE,
        *,
        topics: Mapping[str, int] | None = None,
        group_id: str = GROUP,
        batch_bytes_max: int = 1 << 20,
    ) -> None:
        self.settings = settings
        self.group_id = group_id
        self.topics = {"orders": 6} if topics is None else dict(topics)
        self.context = ShardContext(settings, Random(7), image_of(self.topics), lambda: batch_bytes_max)
        self.shard = GroupShard(self.context)
        self.stage = Stage(self.context.timers, self.shard.apply, self.shard.expire)

    @property
    def group(self) -> ConsumerGroup:
        group = self.context.groups[self.group_id]
        assert isinstance(group, ConsumerGroup)
        return group

    def written(self, since: int = 0) -> list[tuple[str, Any]]:
        """The records by the names of their keys, with what they say; None is a tombstone."""
        found = decoded(self.stage.records[since:])
        return [
            (type(key).__name__.removeprefix("ConsumerGroup").removesuffix("Key"), one) for key, one in found
        ]

    def kinds(self, since: int = 0) -> list[str]:
        return [f"{kind}{'-' if value is None else ''}" for kind, value in self.written(since)]

    def replayed(self) -> "ConsumerStory":
        """The shard after a crash: nothing but what was written. Its sessions have begun."""
        after = ConsumerStory(self.settings, topics=self.topics, group_id=self.group_id)
        after.context.image = self.context.image
        for record in self.stage.records:
            after.shard.apply(type(record)(*decoded([record])[0]))  # type: ignore[call-arg]
        after.stage.records += self.stage.records
        after.stage.carry_out(after.shard.loaded(after.stage.now))
        return after

    # What members do

    def asks(self, member: Consumer, *, version: int = 1, **said: Any) -> ConsumerGroupHeartbeatResponse:
        """One heartbeat with nothing in it but what is said."""
        request = ConsumerGroupHeartbeatRequest(
            **{
                "group_id": self.group_id,
                "member_id": member.id,
                "member_epoch": member.epoch,
                "instance_id": member.instance_id,
                **said,
            }
        )
        caller = Caller("client", HOST, version)
        asked: Asked = self.stage.ask(lambda to, now: self.shard.consumer_heartbeat(request, caller, to, now))
        assert isinstance(asked.answer, ConsumerGroupHeartbeatResponse)
        return asked.answer

    def asks_to_join(self, member: Consumer, **said: Any) -> ConsumerGroupHeartbeatResponse:
        said = {
            "member_epoch": 0,
            "rebalance_timeout_ms": REBALANCE_MS,
            "subscribed_topic_names": member.topics,
            "subscribed_topic_regex": member.regex,
            "server_assignor": member.assignor,
            "topic_partitions": [],
            **said,
        }
        return self.asks(member, **said)

    def joins(self, member: str | Consumer, **how: Any) -> Consumer:
        joining = Consumer(member, **how) if isinstance(member, str) else member
        joining.owned = {}
        joining.takes(self.asks_to_join(joining))
        return joining

    def beats(self, *members: Consumer, **said: Any) -> None:
        """Each sends a heartbeat with what it has, and takes what it is given."""
        for member in members:
            member.takes(self.asks(member, topic_partitions=member.says(), **said))

    def settles(self, *members: Consumer, rounds: int = 10) -> None:
        """Heartbeats until nobody is on the way any more."""
        for _ in range(rounds):
            if self.group.state == "Stable":
                return
            self.beats(*members)
        raise AssertionError(f"the group is {self.group.state}")

    def settles_after_topics(self, *members: Consumer) -> None:
        """The same when topics have changed, which a group notices with a heartbeat."""
        self.beats(*members)
        self.settles(*members)

    def is_stable_with(self, *members: str | Consumer, **how: Any) -> list[Consumer]:
        joined = [self.joins(member, **how) for member in members]
        self.settles(*joined)
        return joined

    def leaves(self, member: Consumer, *, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        return self.asks(member, member_epoch=epoch)

    def error(self, response: ConsumerGroupHeartbeatResponse) -> ErrorCode:
        return ErrorCode(response.error_code)

    # What else happens

    def has_topics(self, topics: Mapping[str, int]) -> None:
        """The cluster's topics are these from now on."""
        names = {name for name in {*self.topics, *topics} if self.topics.get(name) != topics.get(name)}
        deleted = {name for name in self.topics if name not in topics}
        self.topics = dict(topics)
        image = image_of(topics, offset=self.context.image.offset + 1)
        self.stage.carry_out(self.shard.take_image(image, changed=names - deleted, deleted=deleted))

    def waits(self, ms: int, *beating: Consumer) -> None:
        """Time passes; those who are named send heartbeats all the while."""
        for _ in range(ms // 1_000):
            self.stage.pass_time(1_000)
            self.beats(*beating)
        self.stage.pass_time(ms % 1_000)
