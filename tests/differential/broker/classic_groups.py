"""Classic groups as they should go: JoinGroup, SyncGroup, Heartbeat, LeaveGroup in every version."""

from differential.broker.group_requests import (
    AT_ONCE,
    Member,
    alone,
    describe,
    join,
    leave,
    ready,
    subscription,
    sync,
)
from differential.broker.offset_requests import commit, fetch_offsets
from differential.broker.talk import Family, Talk

CLASSIC = Family("classic-groups", settings=AT_ONCE)
REBALANCING = 27


def second_comes(talk: Talk, step: str, first: Member, second: Member) -> None:
    """Both of them in the next generation; they have not synced yet."""
    second.take_id(f"{step}: the second")
    waiting = talk.aside(f"{step}: the second joins", second.join_request(), second.version)
    first.hears(REBALANCING)
    first.beat(f"{step}: the first hears of it")
    first.join(f"{step}: the first joins again")
    second.joined(waiting.come())


def both_sync(talk: Talk, step: str, leader: Member, other: Member) -> None:
    waiting = talk.aside(f"{step}: the other syncs", other.sync_request(), other.sync_version)
    leader.sync(f"{step}: the leader syncs", {leader.id: b"left", other.id: b"right"})
    waiting.come()


@CLASSIC.story
def a_whole_rebalance(talk: Talk) -> None:
    ready(talk)
    for version in range(10):
        step, group = f"v{version}", f"whole-{version}"
        first, second = Member(talk, group, version), Member(talk, group, version)
        first.join(f"{step}: the first joins")
        first.sync(f"{step}: the first syncs", {first.id: b"everything"})
        first.beat(f"{step}: the first is alone")
        second_comes(talk, step, first, second)
        talk.ask(f"{step}: described before syncing", describe(group))
        both_sync(talk, step, first, second)
        first.beat(f"{step}: the first is well")
        second.beat(f"{step}: the second is well")
        talk.ask(f"{step}: described", describe(group))
        first.leave(f"{step}: the first leaves")
        second.beat(f"{step}: the second hears of it")
        second.join(f"{step}: the second joins again")
        second.sync(f"{step}: the second syncs", {second.id: b"everything"})
        second.leave(f"{step}: the second leaves")
        talk.ask(f"{step}: described at last", describe(group))


@CLASSIC.story
def the_first_ids(talk: Talk) -> None:
    """Who comes without an id has to come again with the one that it is given, from version 4 on."""
    ready(talk)
    talk.each("without an id", lambda version: join(f"ids-{version}"))
    for version in range(10):
        talk.ask(f"described v{version}", describe(f"ids-{version}"))
    member = Member(talk, "taken-id")
    member.take_id("takes")
    talk.ask("pending: described", describe("taken-id"), 6)
    member.beat("pending: a heartbeat")
    talk.ask("pending: a sync", sync("taken-id", member.id, -1))
    talk.ask("pending: a commit", commit("taken-id", "nowhere", member_id=member.id))
    member.join("joins")
    other = Member(talk, "taken-id")
    other.take_id("another")
    other.leave("another goes before it joined")
    other.leave("another goes again")


@CLASSIC.story
def joins_again(talk: Talk) -> None:
    ready(talk)
    first = alone(talk, "first", "again")
    first.join("the leader joins again")
    first.join("the leader joins again before it syncs")
    first.sync("the leader syncs", {first.id: b"x"})
    first.sync("the leader syncs again", {first.id: b"y"})
    second = Member(talk, "again")
    second_comes(talk, "two", first, second)
    both_sync(talk, "two", first, second)
    second.sync("a follower syncs again")
    second.join("a follower joins again, unchanged")
    second.sync("a follower syncs after that")
    second.protocols = {"range": subscription("other", "topics")}
    waiting = talk.aside("a follower joins with other topics", second.join_request(), 9)
    first.hears(REBALANCING)
    second_again = talk.aside("a follower asks twice", second.join_request(), 9)
    # Only the second of its two requests counts.
    waiting.come()
    first.join("the leader follows")
    second.joined(second_again.come())
    both_sync(talk, "changed", first, second)
    talk.ask("described", describe("again", operations=True))


@CLASSIC.story
def the_leader_goes(talk: Talk) -> None:
    ready(talk)
    first, second = alone(talk, "first", "led"), Member(talk, "led")
    second_comes(talk, "two", first, second)
    waiting = talk.aside("the second waits for its assignment", second.sync_request(), 5)
    talk.until(describe("led"), 6, lambda answer: answer.groups[0].group_state == "CompletingRebalance")
    first.leave("the leader leaves")
    waiting.come()
    second.join("the second joins")
    second.sync("the second leads", {second.id: b"everything"})
    second.beat("the second is well")


@CLASSIC.story
def protocols(talk: Talk) -> None:
    """What all have in common, by the votes of each."""
    ready(talk)
    first = Member(talk, "votes", protocols={"roundrobin": b"1", "range": b"2"})
    first.join("likes roundrobin")
    first.sync("alone", {first.id: b""})
    second = Member(talk, "votes", protocols={"sticky": b"3", "range": b"4"})
    second_comes(talk, "likes sticky", first, second)
    both_sync(talk, "in common", first, second)
    talk.ask("described", describe("votes"))
    third = Member(talk, "votes", protocols={"sticky": b"5"})
    third.take_id("shares nothing")
    talk.ask("shares nothing", third.join_request())
    talk.ask("another type", join("votes", protocol_type="connect", protocols={"range": b""}), 3)
    second.protocols = {"sticky": b"6"}
    talk.ask("a member that shares nothing any more", second.join_request())
    second.beat("and is still in it")


@CLASSIC.story
def others_than_consumers(talk: Talk) -> None:
    """Groups of other types, whose metadata says nothing of topics."""
    ready(talk)
    talk.create("work")
    answer = talk.ask("an id", join("workers", protocol_type="connect", protocols={"v1": b"\x00"}))
    joined = talk.ask(
        "joins", join("workers", answer.member_id, protocol_type="connect", protocols={"v1": b"\x00"})
    )
    done = sync(
        "workers", joined.member_id, 1, {joined.member_id: b"tasks"}, protocol_type="connect", protocol="v1"
    )
    talk.ask("syncs", done)
    talk.same("described", describe("workers"))
    talk.ask("commits", commit("workers", "work", 5, member_id=joined.member_id, generation=1), 9)
    talk.ask("fetches", fetch_offsets("workers"))
    talk.ask("leaves", leave("workers", (joined.member_id, None)))
    talk.same("described when empty", describe("workers"))
    talk.ask("a consumer comes", join("workers"), 3)


@CLASSIC.story
def a_commit_while_rebalancing(talk: Talk) -> None:
    ready(talk)
    talk.create("busy")
    first, second = alone(talk, "first", "busy-group"), Member(talk, "busy-group")
    second.take_id("second")
    waiting = talk.aside("the second joins", second.join_request(), 9)
    first.hears(REBALANCING)
    held = commit("busy-group", "busy", 7, member_id=first.id, generation=first.generation)
    talk.each("while joining", lambda version: held, range(2, 10))
    first.join("the first joins again")
    second.joined(waiting.come())
    talk.ask("of the generation before", held, 9)
    now = commit("busy-group", "busy", 8, member_id=first.id, generation=first.generation)
    talk.ask("before the assignment", now, 9)
    both_sync(talk, "both", first, second)
    talk.ask("after it", now, 9)
    talk.ask("fetched", fetch_offsets("busy-group"))
