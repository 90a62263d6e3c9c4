"""Members do anything at any time, producers and administrators too, and the broker has its troubles.

Topics come, grow and go, time passes, writes fail, the process is killed, the log is compacted: after every
step the log tells all that there is. A failure is printed as the shortest story that hypothesis finds, with
the line that replays it.
"""

import os
from dataclasses import replace
from typing import Any

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.coordinators.decision.outcome import Caller
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from support.group.model_classic import ClassicClient, classic_stranger
from support.group.model_clients import HOST, GroupClient
from support.group.model_consumer import consumer_stranger
from support.group.model_members import (
    CHECK_MS,
    GROUP,
    GROUPS,
    MIGRATION,
    PICK,
    RETENTION_MS,
    SIZE,
    TOPIC,
    TOPICS,
    Members,
)
from support.group.model_offsets import TOO_LONG, Committed, Place, Written, commit_code
from support.group.model_transactions import EPOCHS, PRODUCERS, speaker
from support.scale import is_soak, scaled

EXAMPLES = 80
SOAK_EXAMPLES_FACTOR = 20
STEPS = 40
COMMITTER = Caller("committer", HOST, 9)
ADMIN = Caller("admin", HOST, 5)

PARTITION = st.integers(0, 2)
OFFSET = st.integers(0, 9)
METADATA = st.sampled_from(["", "note", "", TOO_LONG])
PRODUCER = st.sampled_from(PRODUCERS)
EPOCH_BY = st.sampled_from(EPOCHS)
LIE = st.sampled_from(["", "", "generation", "older generation", "older generation", "member", "instance"])
# Most of them of what is there from the beginning, so that a member may have them.
READ_TOPIC = st.sampled_from([*TOPICS[:2], *TOPICS[:2], *TOPICS])
PLACES = st.lists(st.tuples(READ_TOPIC, PARTITION, METADATA), min_size=1, max_size=2)
FOR_A_MEMBER = st.tuples(PRODUCER, EPOCH_BY, PICK, LIE, PLACES)
# Producers, and somebody who is none, commit for a partition in this order. Then transactions end in that
# order, and something may happen before each and after the last.
WRITERS = st.lists(st.sampled_from([*PRODUCERS, None]), min_size=2, max_size=5)
ENDS = st.permutations(PRODUCERS)
EVENT = st.sampled_from(["", "", "", "", "commit", "delete", "delete group", "get old", "load", "pend"])
EVENTS = st.lists(EVENT, min_size=4, max_size=4)
COMMITS = st.lists(st.sampled_from([True, True, False]), min_size=3, max_size=3)


class Groups(Members):
    """What members do, and commits, producers, an administrator, bad input, and what befalls a broker."""

    # Offsets and administration

    @rule(
        number=PICK,
        topic=TOPIC,
        partition=PARTITION,
        offset=OFFSET,
        metadata=METADATA,
        with_id=st.booleans(),
        retention_ms=st.sampled_from([-1, -1, 60_000]),
    )
    def one_commits(self, number: int, topic: str, partition: int, with_id: bool, **what: Any) -> None:
        """A client, one that was one, or somebody who is no member."""
        known = self.world.image.topics.get(topic)
        if known is None:
            return
        everybody = [*self.clients, *self.former, None]
        who = everybody[number % len(everybody)]
        group = GROUPS[number % 2] if who is None else who.group
        commit = Committed(now_ms=self.world.now.ms, **what)
        self.commit(Place(group, topic, partition), commit, who, known.id if with_id else ZERO_UUID)

    def commit(self, place: Place, commit: Committed, who: GroupClient | None, topic_id: Uuid) -> None:
        request = commit.request(place.group, who, place.topic, topic_id, place.partition)
        asked = self.world.ask(
            "commit", lambda to, now: self.world.shard.offsets.commit(request, COMMITTER, to, now)
        )
        if commit_code(asked.answer) is ErrorCode.NONE:
            assert commit.metadata != TOO_LONG
            self.offsets.note(Written(place, commit))

    @rule(group=GROUP, topic=TOPIC)
    def offsets_are_deleted(self, group: str, topic: str) -> None:
        partitions = [OffsetDeleteRequestPartition(partition_index=number) for number in range(3)]
        request = OffsetDeleteRequest(
            group_id=group, topics=[OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
        )
        asked = self.world.ask("delete", lambda to, _: self.world.shard.delete_offsets(request, to))
        if asked.answer.error_code == 0 and asked.answer.topics[0].partitions[0].error_code == 0:
            self.offsets.forget(group, [topic])

    @rule(groups=st.lists(GROUP, min_size=1, max_size=3))
    def groups_are_deleted(self, groups: list[str]) -> None:
        asked = self.world.ask("delete groups", lambda to, _: self.world.shard.delete(groups, to))
        for result in asked.answer if isinstance(asked.answer, list) else ():
            if result.error_code == ErrorCode.NONE:
                self.offsets.forget(result.group_id)

    # Transactions

    @precondition(lambda self: self.clients or self.former)
    @rule(commits=st.lists(FOR_A_MEMBER, min_size=1, max_size=10), offset=OFFSET)
    def producers_commit_for_members(
        self, commits: list[tuple[int, int, int, str, list[tuple[str, int, str]]]], offset: int
    ) -> None:
        """Of clients and of those that were some, and what they say of them may be wrong."""
        everybody = [*self.clients, *self.former]
        for producer, epoch_by, number, lie, places in commits:
            who = everybody[number % len(everybody)]
            committed = [
                (Place(who.group, topic, partition), Committed(offset, metadata, self.world.now.ms))
                for topic, partition, metadata in places
            ]
            self.producers.commit(producer, epoch_by, speaker(who, lie), committed)

    @rule(producer=PRODUCER, epoch_by=EPOCH_BY, commits=st.booleans(), times=st.integers(1, 2))
    def a_producer_ends(self, producer: int, epoch_by: int, commits: bool, times: int) -> None:
        """A marker may come twice, and also where nothing is pending."""
        for _ in range(times):
            self.producers.end(producer, epoch_by, commits=commits)

    @rule(
        place=st.builds(Place, GROUP, TOPIC, PARTITION),
        writers=WRITERS,
        ends=ENDS,
        commits=COMMITS,
        events=EVENTS,
    )
    def producers_meet_at_a_partition(
        self,
        place: Place,
        writers: list[int | None],
        ends: list[int],
        commits: list[bool],
        events: list[str],
    ) -> None:
        """Every time it is seen what counts."""
        for offset, producer in enumerate(writers):
            self.commit_simply(place, offset, producer)
        for producer, commit, event in zip(ends, commits, events[1:], strict=True):
            self.befalls(event, place, producer)
            self.offsets.check(self.world, GROUPS)
            self.producers.end(producer, 0, commits=commit)
            self.offsets.check(self.world, GROUPS)
        self.befalls(events[0], place, ends[0])

    def commit_simply(self, place: Place, offset: int, producer: int | None) -> None:
        """In the name of no member."""
        commit = Committed(offset, "", self.world.now.ms)
        if producer is None:
            self.commit(place, commit, None, ZERO_UUID)
        else:
            self.producers.commit(producer, 0, speaker(None, ""), [(place, commit)])

    def befalls(self, event: str, place: Place, producer: int) -> None:
        match event:
            case "commit":
                self.commit_simply(place, 10, None)
            case "pend":
                self.commit_simply(place, 11, producer)
            case "delete":
                self.offsets_are_deleted(place.group, place.topic)
            case "delete group":
                self.groups_are_deleted([place.group])
            case "get old":
                self.world.pass_time(RETENTION_MS + CHECK_MS)
            case "load":
                self.world.crash()

    # Administration

    @rule(group=GROUP, instances=st.lists(st.sampled_from(["one", "two", "none"]), min_size=1, max_size=3))
    def static_members_are_removed(self, group: str, instances: list[str]) -> None:
        request = LeaveGroupRequest(
            group_id=group, members=[MemberIdentity(member_id="", group_instance_id=one) for one in instances]
        )
        self.world.ask("remove", lambda to, now: self.world.shard.leave(request, ADMIN, to, now))

    # Bad input

    @rule(number=PICK, by=st.sampled_from([-1, 1, 7]), group=GROUP)
    def somebody_is_wrong(self, number: int, by: int, group: str) -> None:
        """Strangers, members of another generation: refused, and nothing is written. So it is with zombies,
        unless nobody has noticed yet that they are gone."""
        if self.former:
            zombie = self.former[number % len(self.former)]
            if zombie.epoch_or_generation > 0:
                zombie.heartbeat()
        written = len(self.world.log)
        for stranger in (classic_stranger(self.world, group), consumer_stranger(self.world, group)):
            stranger.heartbeat()
            assert not stranger.is_in
        for client in self.clients:
            if isinstance(client, ClassicClient) and client.is_in:
                client.heartbeat(generation=client.generation + by)
                assert not client.is_in
        assert len(self.world.log) == written

    # The broker

    @rule(migration=MIGRATION, size=SIZE)
    def settings_change(self, migration: str, size: int) -> None:
        self.world.takes_settings(
            replace(self.world.settings, migration=migration, classic_size_max=size, consumer_size_max=size)
        )

    @rule(how=st.sampled_from(["killed", "killed and compacted", "compacted to the bone", "cannot write"]))
    def the_broker_has_trouble(self, how: str) -> None:
        if how == "cannot write":
            self.world.refuses = True
            return
        if how != "killed":
            self.world.compact(keep_tombstones=how == "killed and compacted")
        self.world.refuses = False
        self.world.crash()

    # In the end

    @rule()
    def everybody_goes(self) -> None:
        """Nobody is heard of any more. Everything ends, and of nothing a trace is left but tombstones."""
        self.world.refuses = False
        for client in list(self.clients):
            self.retire(client)
        # Sessions end, then what is left of the groups gets old, and the next look at it takes it away, but
        # for that which waits for the end of a transaction.
        self.world.pass_time(2 * (RETENTION_MS + CHECK_MS))
        self.offsets.check(self.world, GROUPS)
        assert set(self.world.shard.context.groups) == self.offsets.pending_groups()
        for producer in PRODUCERS:
            self.producers.end(producer, 0, commits=producer % 2 == 0)
        self.offsets.check(self.world, GROUPS)
        self.world.pass_time(CHECK_MS)
        assert not self.world.waiting
        assert self.world.shard.context.groups == {}
        assert len(self.world.shard.context.timers) == 1
        left = [key for key, value in self.world.last_values().items() if value is not None]
        assert left == []


# The same stories every time, so that a change is judged by what it changed. BARNABAS_FUZZ=N tells N others.
LENGTH = hypothesis_settings(
    max_examples=scaled("BARNABAS_FUZZ", EXAMPLES, EXAMPLES * SOAK_EXAMPLES_FACTOR),
    stateful_step_count=STEPS,
    deadline=None,
    derandomize=not is_soak() and "BARNABAS_FUZZ" not in os.environ,
)
Members.TestCase.settings = LENGTH
Groups.TestCase.settings = LENGTH
TestMembers = Members.TestCase
TestGroups = Groups.TestCase
