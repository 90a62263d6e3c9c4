"""What time does to groups: the first rebalance waits, and members who are not heard of are gone."""

import time
from typing import Any

from barnabas.protocol.messages.classic_groups import JoinGroupRequest
from differential.broker.classic_groups import both_sync, second_comes
from differential.broker.consumer_requests import IN_ORDER, LEAVE_FOR_A_WHILE, Consumer, create, heartbeat
from differential.broker.group_requests import Member, describe, describe_consumer, join, ready
from differential.broker.offset_requests import commit
from differential.broker.talk import Family, Talk

# Long enough for a busy machine to keep up, in the steps that must not be late.
SESSION_MS = 2_000
TIMEOUTS = Family(
    "group-timeouts",
    settings={
        "group.initial.rebalance.delay.ms": 1_000,
        "group.min.session.timeout.ms": 100,
        "group.consumer.assignment.interval.ms": 0,
        "group.consumer.min.heartbeat.interval.ms": 100,
        "group.consumer.heartbeat.interval.ms": 200,
        "group.consumer.min.session.timeout.ms": 500,
        "group.consumer.session.timeout.ms": SESSION_MS,
    },
    settings_of_kafka=IN_ORDER,
)


class Brief(Member):
    """A classic member for whom nobody waits long: neither for its heartbeats nor for its joining again."""

    session_ms = SESSION_MS

    def join_request(self) -> JoinGroupRequest:
        return join(
            self.group,
            self.id,
            protocols=self.protocols,
            instance_id=self.instance_id,
            session_ms=self.session_ms,
            rebalance_ms=SESSION_MS,
        )


def has(talk: Talk, group: str, state: str, members: int) -> None:
    """Wait until the group is so."""
    talk.until(
        describe(group),
        5,
        lambda answer: (answer.groups[0].group_state, len(answer.groups[0].members)) == (state, members),
    )


@TIMEOUTS.story
def the_first_rebalance(talk: Talk) -> None:
    """Those who come within the delay are in the first generation together."""
    ready(talk)
    first, second = Member(talk, "delayed", 3), Member(talk, "delayed", 3)
    joining = talk.aside("the first joins", first.join_request(), 3)
    has(talk, "delayed", "PreparingRebalance", 1)
    talk.ask("while it waits: described", describe("delayed"))
    also = talk.aside("the second joins", second.join_request(), 3)
    first.joined(joining.come())
    second.joined(also.come())
    both_sync(talk, "both", first, second)
    talk.ask("described", describe("delayed"))


@TIMEOUTS.story
def a_silent_member(talk: Talk) -> None:
    ready(talk)
    talk.create("silence")
    member = Brief(talk, "silent")
    member.join("joins")
    member.sync("syncs", {member.id: b""})
    has(talk, "silent", "Empty", 0)
    talk.ask("described", describe("silent"))
    member.beat("a heartbeat")
    talk.ask("a commit", commit("silent", "silence", member_id=member.id, generation=1), 9)
    member.join("joins with its old id")


@TIMEOUTS.story
def one_of_two(talk: Talk) -> None:
    """The other one is told; and if it does not join again, it is gone too."""
    ready(talk)
    first, second = Brief(talk, "halves"), Brief(talk, "halves")
    first.session_ms = 30_000
    first.join("the first joins")
    first.sync("the first syncs", {first.id: b"all"})
    second_comes(talk, "two", first, second)
    both_sync(talk, "two", first, second)
    first.hears(27)
    first.join("the first joins again")
    first.sync("the first has all again", {first.id: b"all"})
    talk.ask("described", describe("halves"))
    third = Brief(talk, "halves")
    third.take_id("a third")
    waiting = talk.aside("a third comes, the first does not answer", third.join_request(), 9)
    third.joined(waiting.come())
    talk.ask("the third is alone: described", describe("halves"))


@TIMEOUTS.story
def static_members(talk: Talk) -> None:
    ready(talk)
    member = Brief(talk, "statics", instance_id="one")
    member.join("joins")
    member.sync("syncs", {member.id: b""})
    has(talk, "statics", "Empty", 0)
    talk.ask("after its session: described", describe("statics"))
    member.beat("a heartbeat")
    back = Brief(talk, "statics", instance_id="one")
    back.join("comes back")


@TIMEOUTS.story
def an_id_that_is_not_used(talk: Talk) -> None:
    ready(talk)
    member = Brief(talk, "unused")
    member.take_id("takes")
    time.sleep(1.5 * SESSION_MS / 1000)
    talk.ask("joins too late", member.join_request())
    talk.ask("described", describe("unused"))


@TIMEOUTS.story
def a_leader_who_brings_nothing(talk: Talk) -> None:
    """The assignment is waited for as long as a rebalance may take."""
    ready(talk)
    member = Member(talk, "idle")
    member.take_id("one")
    joins = join("idle", member.id, rebalance_ms=SESSION_MS)
    member.joined(talk.ask("joins", joins))
    has(talk, "idle", "Empty", 0)
    member.beat("a heartbeat")
    talk.ask("described", describe("idle"))


@TIMEOUTS.story
def a_silent_consumer(talk: Talk) -> None:
    ready(talk)
    create(talk, "hushed", 2)
    first, second = Consumer(talk, "hushed", "m1"), Consumer(talk, "hushed", "m2")
    first.join("the first joins", "hushed")
    first.beat("the first has all")
    away = Consumer(talk, "hushed", "m3")
    away.join("an instance joins", "hushed", instance_id="one")
    away.leave("the instance leaves for a while", LEAVE_FOR_A_WHILE, instance_id="one")

    def is_empty(answer: Any) -> bool:
        return not answer.groups[0].members

    talk.until(describe_consumer("hushed"), 1, is_empty)
    talk.ask("described", describe_consumer("hushed"))
    first.beat("a heartbeat of the first")
    second.join("another one joins", "hushed")


@TIMEOUTS.story
def a_consumer_that_keeps_what_it_has(talk: Talk) -> None:
    """It is told to give up, and is gone when its rebalance timeout is over."""
    ready(talk)
    create(talk, "kept", 2)
    first, second = Consumer(talk, "keeps", "m1"), Consumer(talk, "keeps", "m2")
    first.join("the first joins", "kept", rebalance_timeout_ms=300)
    first.beat("the first has all")
    second.join("the second joins", "kept")
    first.beat_quietly("the first is told")

    def has_one(answer: Any) -> bool:
        return len(answer.groups[0].members) == 1

    # The first is heard of, so that it is not its session that ends.
    def told(answer: Any) -> bool:
        talk.quietly(heartbeat("keeps", "m2", second.epoch), 1)
        return bool(answer.error_code != 0)

    talk.until(heartbeat("keeps", "m1", first.epoch), 1, told)
    talk.until(describe_consumer("keeps"), 1, has_one)
    first.beat("the first is gone")
    talk.ask("described", describe_consumer("keeps"))
