"""Classic groups asked wrongly: the code of each refusal, and the group goes on."""

from barnabas.protocol.messages.classic_groups import LeaveGroupRequest
from differential.broker.classic_groups import both_sync, second_comes
from differential.broker.group_requests import (
    AT_ONCE,
    Member,
    alone,
    beat,
    describe,
    join,
    leave,
    leave_alone,
    ready,
    subscription,
    sync,
)
from differential.broker.talk import Family, Talk

REFUSALS = Family("classic-refusals", settings={**AT_ONCE, "group.max.size": 2})
REBALANCING = 27
INT_MAX = 2**31 - 1


@REFUSALS.story
def wrong_joins(talk: Talk) -> None:
    ready(talk)
    talk.same("no group", join(""))
    for session_ms in (5_999, 1_800_001, 0, -1, -(2**31), INT_MAX):
        talk.same(f"session timeout {session_ms}", join("wrong", session_ms=session_ms), [0, 5, 9])
    for session_ms in (6_000, 1_800_000):
        talk.ask(f"session timeout {session_ms}", join(f"right-{session_ms}", session_ms=session_ms), 3)
    talk.same("unknown member", join("wrong", "nobody"))
    talk.same("no protocols", join("wrong", protocols={}), [0, 3, 4, 9])
    talk.same("no type", join("wrong", protocol_type=""), [0, 3, 4, 9])
    talk.same("no type, no protocols", join("wrong", protocol_type="", protocols={}), [3])
    talk.ask("an empty name of a protocol", join("unnamed", protocols={"": subscription("x")}), 3)
    talk.ask("described", describe("wrong"))
    talk.ask("a longer name of a group", join("g" * 300), 3)
    talk.ask("an odd name of a group", join("a b/c\n\u00e4\U0001f600"), 3)
    talk.ask("odd groups described", describe("a b/c\n\u00e4\U0001f600"))
    talk.ask("a reason that is long", join("reasoned", reason="r" * 300))
    talk.ask("a rebalance timeout of nothing", join("timeless", rebalance_ms=0), 3)
    talk.ask("a negative rebalance timeout", join("timeless-2", rebalance_ms=-1), 3)


@REFUSALS.story
def joins_of_a_group_of_others(talk: Talk) -> None:
    ready(talk)
    member = alone(talk, "one", "others")
    talk.same("unknown member", join("others", "nobody"))
    talk.same("no protocols", join("others", protocols={}), [3, 9])
    talk.same("no type", join("others", protocol_type=""), [3, 9])
    talk.same("another type", join("others", protocol_type="connect"), [3, 9])
    talk.same("another protocol", join("others", protocols={"sticky": b""}), [3, 9])
    talk.same("an instance id that is an unknown member's", join("others", "nobody", instance_id="i"), [5, 9])
    member.beat("still well")


@REFUSALS.story
def wrong_syncs(talk: Talk) -> None:
    ready(talk)
    talk.same("no group", sync("", "m", 1))
    talk.same("unknown group", sync("unknown", "m", 1))
    member = alone(talk, "one", "synced")
    talk.same("unknown member", sync("synced", "nobody", 1))
    talk.same("no member", sync("synced", "", 1))
    for generation in (0, 2, -1, INT_MAX):
        talk.same(f"generation {generation}", sync("synced", member.id, generation))
    talk.ask("another type", sync("synced", member.id, 1, protocol_type="connect"))
    talk.ask("another protocol", sync("synced", member.id, 1, protocol="sticky"))
    talk.ask("no type", sync("synced", member.id, 1, protocol_type=None))
    talk.ask("no protocol", sync("synced", member.id, 1, protocol=None))
    talk.ask("empty type", sync("synced", member.id, 1, protocol_type=""))
    talk.ask("neither", sync("synced", member.id, 1, protocol_type=None, protocol=None))
    talk.ask("an instance id of nobody", sync("synced", member.id, 1, instance_id="nobody"))
    member.join("joins again")
    talk.ask("assigns to a stranger", sync("synced", member.id, 2, {"stranger": b"x", member.id: b"y"}))
    member.join("joins once more")
    talk.ask("assigns nothing", sync("synced", member.id, 3))
    talk.ask("described", describe("synced"))
    other = Member(talk, "synced")
    other.take_id("another")
    waiting = talk.aside("another joins", other.join_request())
    member.hears(REBALANCING)
    talk.ask("while joining", sync("synced", member.id, 3))
    member.join("joins")
    other.joined(waiting.come())
    talk.ask("of the generation before", sync("synced", member.id, 3))
    member.leave("leaves")
    other.leave("the other leaves")
    talk.ask("when it is empty", sync("synced", member.id, 4))


@REFUSALS.story
def wrong_heartbeats(talk: Talk) -> None:
    ready(talk)
    talk.same("no group", beat("", "m", 1))
    talk.same("unknown group", beat("unknown", "m", 1))
    member = Member(talk, "beaten")
    member.join("joins")
    member.beat("before the assignment")
    member.sync("syncs", {member.id: b""})
    talk.same("unknown member", beat("beaten", "nobody", 1))
    talk.same("no member", beat("beaten", "", 1))
    for generation in (0, 2, -1, INT_MAX):
        talk.same(f"generation {generation}", beat("beaten", member.id, generation))
    talk.same("an instance id of nobody", beat("beaten", member.id, 1, "nobody"), [3, 4])
    member.leave("leaves")
    member.beat("after leaving")


@REFUSALS.story
def wrong_leaves(talk: Talk) -> None:
    ready(talk)
    talk.each("no group", lambda version: leave_alone("", "m", version))
    talk.each("unknown group", lambda version: leave_alone("unknown", "m", version))
    talk.same("nobody, of an unknown group", LeaveGroupRequest(group_id="unknown"), range(3, 6))
    member = alone(talk, "one", "left")
    talk.each("unknown member", lambda version: leave_alone("left", "nobody", version))
    talk.each("no member", lambda version: leave_alone("left", "", version))
    talk.same("nobody", LeaveGroupRequest(group_id="left"), range(3, 6))
    talk.same("an unknown instance", leave("left", ("", "nobody")), range(3, 6))
    talk.same("an unknown instance with an id", leave("left", (member.id, "nobody")), range(3, 6))
    talk.same("two unknown", leave("left", ("a", None), ("b", "c")), range(3, 6))
    member.beat("still well")
    twice = leave("left", ("a", None), (member.id, None), (member.id, None))
    talk.ask("one unknown, one twice", twice)
    talk.ask("described", describe("left"))
    talk.each("of an empty group", lambda version: leave_alone("left", member.id, version))


@REFUSALS.story
def too_many(talk: Talk) -> None:
    """More members than group.max.size."""
    ready(talk)
    first, second = alone(talk, "first", "full"), Member(talk, "full")
    second_comes(talk, "two", first, second)
    talk.same("before the assignment: more of old versions", join("full"), range(4))
    both_sync(talk, "two", first, second)
    talk.same("more", join("full"))
    talk.same("an instance", join("full", instance_id="static"), range(5, 10))
    talk.same("an unknown member", join("full", "nobody"), [3, 9])
    first.beat("the group goes on")
    second.leave("one leaves")
    first.join("the first joins again")
    first.sync("the first syncs again", {first.id: b"1"})
    third = Member(talk, "full")
    second_comes(talk, "room again", first, third)
