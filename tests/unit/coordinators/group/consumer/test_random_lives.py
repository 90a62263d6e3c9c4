"""Random operations: the log restores the state, no partition has two owners, and the group converges."""

from typing import Any

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import StoredRecord
from barnabas.coordinators.group.assignors.shares import Shares
from barnabas.coordinators.group.assignors.spec import TopicSpec
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.settings import GroupSettings, GroupTimes
from barnabas.protocol.error_codes import ErrorCode
from support.group.consumer_stories import Consumer, ConsumerStory
from support.group.stories import decoded

TOPICS = ("orders", "orders-eu", "payments")
EXAMPLES = 60
PICK = st.integers(0, 99)
SUBSCRIPTIONS = st.sets(st.sampled_from(TOPICS), max_size=3)
REGEXES = st.sampled_from(["", "orders.*", ".*", "pay.*"])
INSTANCES = st.sampled_from([None, None, "one", "two"])


class Lives(RuleBasedStateMachine):
    """Members join, leave, fall silent, change their minds; time passes and topics change."""

    @initialize(interval_ms=st.sampled_from([0, 1_000]), assignor=st.sampled_from(["uniform", "range"]))
    def begin(self, interval_ms: int, assignor: str) -> None:
        settings = GroupSettings(times=GroupTimes(assignment_interval_ms=interval_ms), assignors=(assignor,))
        self.story = ConsumerStory(settings, topics=dict.fromkeys(TOPICS[:2], 3))
        # Somebody who reads the log as it is written, and nothing else.
        self.reader = ConsumerStory(settings)
        self.read = 0
        self.members: list[Consumer] = []
        self.made = 0

    # What members do

    @rule(topics=SUBSCRIPTIONS, regex=REGEXES, instance_id=INSTANCES)
    def joins(self, topics: set[str], regex: str, instance_id: str | None) -> None:
        self.made += 1
        member = Consumer(f"m{self.made}", topics=sorted(topics), regex=regex, instance_id=instance_id)
        answer = self.story.asks_to_join(member)
        if self.story.error(answer) is ErrorCode.UNRELEASED_INSTANCE_ID:
            return
        member.takes(answer)
        self.members = [one for one in self.members if instance_id is None or one.instance_id != instance_id]
        self.members.append(member)

    @precondition(lambda self: self.members)
    @rule(pick=PICK, epoch=st.sampled_from([-1, -2]))
    def leaves(self, pick: int, epoch: int) -> None:
        member = self.members.pop(pick % len(self.members))
        if member.instance_id is None:
            epoch = -1
        self.known(self.story.leaves(member, epoch=epoch))

    @precondition(lambda self: self.members)
    @rule(pick=PICK)
    def falls_silent(self, pick: int) -> None:
        self.members.pop(pick % len(self.members))

    @precondition(lambda self: self.members)
    @rule(pick=PICK)
    def acknowledges(self, pick: int) -> None:
        self.beat(self.members[pick % len(self.members)])

    @precondition(lambda self: self.members)
    @rule(pick=PICK)
    def does_not_acknowledge(self, pick: int) -> None:
        """Its heartbeat does not say what it has, as while it runs a callback."""
        member = self.members[pick % len(self.members)]
        answer = self.story.asks(member)
        if self.known(answer):
            keeps = {topic: set(partitions) for topic, partitions in member.owned.items()}
            member.takes(answer)
            for topic, partitions in keeps.items():
                member.owned.setdefault(topic, set()).update(partitions)
        else:
            self.members.remove(member)

    @precondition(lambda self: self.members)
    @rule(pick=PICK)
    def loses_an_answer(self, pick: int) -> None:
        member = self.members[pick % len(self.members)]
        self.known(self.story.asks(member, topic_partitions=member.says()))

    @precondition(lambda self: self.members)
    @rule(pick=PICK, topics=SUBSCRIPTIONS, regex=REGEXES)
    def changes_its_mind(self, pick: int, topics: set[str], regex: str) -> None:
        member = self.members[pick % len(self.members)]
        self.beat(member, subscribed_topic_names=sorted(topics), subscribed_topic_regex=regex)

    # What else happens

    @rule(ms=st.sampled_from([500, 11_000, 40_000]))
    def time_passes(self, ms: int) -> None:
        self.story.stage.pass_time(ms)

    @rule(topics=st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 4)))
    def topics_change(self, topics: dict[str, int]) -> None:
        self.story.has_topics(topics)

    @precondition(lambda self: self.members)
    @rule()
    def settles(self) -> None:
        """Heartbeats in turn, and soon nobody is on the way any more, and all is assigned."""
        for _ in range(12):
            # Those who fell silent are taken out, and expressions are resolved again.
            self.story.stage.pass_time(12_000)
            for member in list(self.members):
                self.beat(member)
        if not self.members:
            return
        group = self.story.group
        assert group.state == "Stable", group.members
        read = {name for name in self.story.topics if name in group.subscriptions}
        held = sum(len(one) for member in group.members.values() for one in member.assigned.values())
        assert held == sum(self.story.topics[name] for name in read)

    def beat(self, member: Consumer, **said: Any) -> None:
        answer = self.story.asks(member, topic_partitions=member.says(), **said)
        if self.known(answer):
            member.takes(answer)
        else:
            self.members.remove(member)

    def known(self, answer: Any) -> bool:
        """Whoever was away too long is told so, and nothing else goes wrong."""
        code = self.story.error(answer)
        assert code in (
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_MEMBER_EPOCH,
            ErrorCode.FENCED_INSTANCE_ID,
        ), answer
        return code is ErrorCode.NONE

    # What always holds

    @invariant()
    def the_log_tells_it_all(self) -> None:
        if not hasattr(self, "story"):
            return
        for key, value in decoded(self.story.stage.records[self.read :]):
            self.reader.shard.apply(StoredRecord(key, value))
        self.read = len(self.story.stage.records)
        assert self.reader.shard.durable() == self.story.shard.durable()

    @invariant()
    def what_was_counted_is_what_there_is(self) -> None:
        group = self.story.context.groups.get("g") if hasattr(self, "story") else None
        if not isinstance(group, ConsumerGroup) or group.shares is None:
            return
        topics = {topic.id: TopicSpec(9) for topic in self.story.context.image.topics.values()}
        counted, anew = group.shares, Shares(group.members, group.targets)
        for member_id in ("somebody", *group.members):
            told = counted.deal(member_id, frozenset(topics), topics)
            assert told == anew.deal(member_id, frozenset(topics), topics)

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        if not hasattr(self, "story") or "g" not in self.story.context.groups:
            return
        owners: dict[tuple[Uuid, int], str] = {}
        for member in self.story.group.members.values():
            for part in (member.assigned, member.revoking):
                for topic_id, partitions in part.items():
                    for partition in partitions:
                        other = owners.setdefault((topic_id, partition), member.id)
                        assert other == member.id, f"{partition} has {other} and {member.id}"

    @invariant()
    def nobody_works_on_what_is_given_to_another(self) -> None:
        """What a client takes to be its own, as long as the group counts it in, no other has been given."""
        if not hasattr(self, "story"):
            return
        group = self.story.context.groups.get("g")
        owners: dict[tuple[Uuid, int], str] = {}
        for member in self.members:
            if group is None or member.id not in self.story.group.members:
                continue
            for topic_id, partitions in member.owned.items():
                for partition in partitions:
                    other = owners.setdefault((topic_id, partition), member.id)
                    assert other == member.id, f"{partition} is worked on by {other} and {member.id}"


Lives.TestCase.settings = hypothesis_settings(max_examples=EXAMPLES, stateful_step_count=40, deadline=None)
TestLives = Lives.TestCase
