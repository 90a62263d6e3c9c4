"""Static members of classic groups: restarts, fencing, skipped assignments, leaving by name."""

from differential.broker.classic_groups import both_sync, second_comes
from differential.broker.group_requests import (
    AT_ONCE,
    Member,
    alone,
    beat,
    describe,
    join,
    leave,
    ready,
    subscription,
    sync,
)
from differential.broker.offset_requests import commit, fetch_offsets
from differential.broker.talk import Family, Talk

STATIC = Family("static-members", settings=AT_ONCE)
REBALANCING = 27
OTHER = {"range": subscription("other", "topics")}


@STATIC.story
def a_restart(talk: Talk) -> None:
    """A member that comes again without an id takes its own place, and nobody else moves."""
    ready(talk)
    for version in range(5, 10):
        step, group = f"v{version}", f"restart-{version}"
        first = alone(talk, step, group, version, instance_id="one")
        second = Member(talk, group, version, instance_id="two")
        second_comes(talk, step, first, second)
        both_sync(talk, step, first, second)
        again = Member(talk, group, version, instance_id="two")
        again.join(f"{step}: the follower restarts")
        again.sync(f"{step}: the follower gets what it had")
        first.beat(f"{step}: the leader hears nothing of it")
        second.beat(f"{step}: the follower before the restart")
        leader = Member(talk, group, version, instance_id="one")
        leader.join(f"{step}: the leader restarts")
        leader.sync(f"{step}: the leader gets what it had", {leader.id: b"mine", again.id: b"yours"})
        again.beat(f"{step}: the follower hears nothing of it")
        talk.ask(f"{step}: described", describe(group))


@STATIC.story
def a_restart_with_other_topics(talk: Talk) -> None:
    ready(talk)
    first = alone(talk, "first", "changes", instance_id="one")
    second = Member(talk, "changes", instance_id="two")
    second_comes(talk, "two", first, second)
    both_sync(talk, "two", first, second)
    again = Member(talk, "changes", instance_id="two", protocols=OTHER)
    again.join("the follower restarts with other topics")
    first.beat("the leader hears nothing of it")
    leader = Member(talk, "changes", instance_id="one", protocols=OTHER)
    leader.join("the leader restarts with other topics")
    leader.sync("the leader syncs", {leader.id: b"1", again.id: b"2"})
    sticky = Member(talk, "changes", instance_id="two", protocols={"sticky": subscription("topics")})
    talk.ask("a restart that shares nothing", sticky.join_request())
    talk.ask("described", describe("changes"))


@STATIC.story
def a_restart_while_joining(talk: Talk) -> None:
    ready(talk)
    first = alone(talk, "first", "hasty", instance_id="one")
    second = Member(talk, "hasty", instance_id="two")
    before = talk.aside("the second joins", second.join_request())
    first.hears(REBALANCING)
    after = talk.aside("the second joins again", second.join_request())
    before.come()
    first.join("the first joins again")
    second.joined(after.come())
    waiting = talk.aside("the second waits for its assignment", second.sync_request())
    talk.until(describe("hasty"), 6, lambda answer: answer.groups[0].group_state == "CompletingRebalance")
    again = Member(talk, "hasty", instance_id="two")
    joining = talk.aside("the second restarts", again.join_request())
    waiting.come()
    first.hears(REBALANCING)
    first.join("the first joins once more")
    again.joined(joining.come())
    both_sync(talk, "at last", first, again)


@STATIC.story
def fenced(talk: Talk) -> None:
    """Two with one instance id: the older one is told."""
    ready(talk)
    talk.create("fences")
    old = alone(talk, "old", "fenced", instance_id="one")
    new = Member(talk, "fenced", instance_id="one")
    new.join("the new one joins")
    talk.same("the old one's heartbeat", beat("fenced", old.id, 1, "one"), [3, 4])
    talk.same("the old one's heartbeat without its name", beat("fenced", old.id, 1))
    talk.same("the old one's sync", sync("fenced", old.id, 1, instance_id="one"), range(3, 6))
    talk.same("the old one joins", join("fenced", old.id, instance_id="one"), range(5, 10))
    talk.same("the old one joins without its name", join("fenced", old.id), [3, 9])
    held = commit("fenced", "fences", 3, member_id=old.id, generation=1, instance_id="one")
    talk.same("the old one's commit", held, range(7, 10))
    talk.same("the old one leaves", leave("fenced", (old.id, "one")), range(3, 6))
    talk.same("the new one's id under another name", beat("fenced", new.id, 1, "two"), [3, 4])
    new.beat("the new one is well")
    unnamed = commit("fenced", "fences", 4, member_id=new.id, generation=new.generation)
    talk.ask("the new one commits without its name", unnamed, 9)
    talk.ask("fetched", fetch_offsets("fenced"))


@STATIC.story
def leaving_by_name(talk: Talk) -> None:
    ready(talk)
    for version in range(3, 6):
        step, group = f"v{version}", f"named-{version}"
        member = alone(talk, step, group, instance_id="one")
        talk.ask(f"{step}: with a wrong id", leave(group, ("nobody", "one")), version)
        talk.ask(f"{step}: by name", leave(group, ("", "one"), ("", "unknown")), version)
        member.beat(f"{step}: a heartbeat after it")
        talk.ask(f"{step}: described", describe(group))
        back = Member(talk, group, instance_id="one")
        back.join(f"{step}: comes back")
        talk.ask(f"{step}: by name and id", leave(group, (back.id, "one")), version)


@STATIC.story
def odd_names(talk: Talk) -> None:
    ready(talk)
    talk.same("an empty name", join("odd", instance_id=""), range(5, 10))
    talk.ask("a name like a path", join("odd-path", instance_id="a/b c"))
    talk.ask("a dot", join("odd-dot", instance_id="."))
    talk.ask("a long name", join("odd-long", instance_id="n" * 250))
    talk.ask("an id and a name of nobody", join("odd", "nobody", instance_id="x"))
    talk.ask("a heartbeat of an empty name", beat("odd", "nobody", 1, ""))
    talk.ask("described", describe("odd", "odd-path", "odd-dot", "odd-long"))
    dynamic = alone(talk, "dynamic", "mixed")
    talk.ask("a dynamic member's id with a name", join("mixed", dynamic.id, instance_id="x"))
    dynamic.beat("the dynamic member")


@STATIC.story
def cooperative(talk: Talk) -> None:
    """Partitions are given up in one rebalance and given away in the next."""
    ready(talk)

    def owning(*partitions: int) -> dict[str, bytes]:
        owned = {"topics": partitions} if partitions else None
        return {"cooperative-sticky": subscription("topics", owned=owned)}

    first = alone(talk, "first", "cooperates", protocols=owning())
    first.protocols = owning(0, 1)
    second = Member(talk, "cooperates", protocols=owning())
    second_comes(talk, "gives up", first, second)
    both_sync(talk, "gives up", first, second)
    first.protocols = owning(0)
    waiting = talk.aside("the first joins again", first.join_request())
    second.hears(REBALANCING)
    second.join("the second follows")
    first.joined(waiting.come())
    both_sync(talk, "takes over", first, second)
    talk.ask("described", describe("cooperates"))
