"""Groups of KIP-848 as they should go: ConsumerGroupHeartbeat and -Describe, and offsets of members."""

from differential.broker.consumer_requests import (
    AT_ONCE,
    IN_ORDER,
    LEAVE_FOR_A_WHILE,
    Consumer,
    comes,
    create,
)
from differential.broker.group_admin import delete as delete_groups
from differential.broker.group_admin import listed
from differential.broker.group_offsets import delete as delete_offsets
from differential.broker.group_requests import describe, describe_consumer, ready
from differential.broker.offset_requests import commit, fetch_offsets
from differential.broker.talk import Family, Talk

CONSUMERS = Family("consumer-groups", settings=AT_ONCE, settings_of_kafka=IN_ORDER)


@CONSUMERS.story
def alone(talk: Talk) -> None:
    ready(talk)
    create(talk, "one-topic", 3)
    for version in (0, 1):
        step, group = f"v{version}", f"alone-{version}"
        # The coordinator makes the id up in the first version.
        member = Consumer(talk, group, "" if version == 0 else "m1", version)
        member.join(f"{step}: joins", "one-topic")
        member.beat_quietly(f"{step}: a heartbeat")
        member.beat(f"{step}: has taken all")
        member.beat_quietly(f"{step}: nothing new")
        talk.same(f"{step}: described", describe_consumer(group, operations=True))
        member.leave(f"{step}: leaves")
        talk.same(f"{step}: described when empty", describe_consumer(group))


@CONSUMERS.story
def two_members(talk: Talk) -> None:
    ready(talk)
    create(talk, "shared", 4)
    first, second = Consumer(talk, "two", "m1"), Consumer(talk, "two", "m2")
    first.join("the first joins", "shared")
    first.beat("the first has all")
    second.join("the second joins", "shared")
    talk.ask("the second has nothing yet: described", describe_consumer("two"))
    second.beat("the second waits")
    first.beat_quietly("the first is told to give up")
    talk.ask("the first gives up: described", describe_consumer("two"))
    second.beat("the second still waits")
    first.beat("the first has given up")
    second.beat("the second gets its part")
    second.beat("the second has its part")
    first.beat("the first is well")
    talk.ask("all is well: described", describe_consumer("two"))
    first.leave("the first leaves")
    second.beat("the second gets the rest")
    second.beat("the second has all")
    talk.ask("one is left: described", describe_consumer("two"))
    third = Consumer(talk, "two", "m1")
    third.join("the first comes back", "shared", server_assignor="range")
    talk.ask("another assignor: described", describe_consumer("two"))
    second.beat("the second gives up again")
    second.beat("the second has given up")
    third.beat("the third gets its part")
    talk.ask("the end: described", describe_consumer("two"))


@CONSUMERS.story
def subscriptions(talk: Talk) -> None:
    ready(talk)
    for name in ("left", "right"):
        create(talk, name, 2)
    member = Consumer(talk, "changing", "m1")
    member.join("one topic and one that is not there", "left", "later")
    member.beat("has it")
    member.beat("two topics", subscribed_topic_names=["left", "right"])
    member.beat("has both")
    talk.ask("two topics: described", describe_consumer("changing"))
    member.beat("only the other", subscribed_topic_names=["right"])
    member.beat("has given up")
    member.beat("nothing", subscribed_topic_names=[])
    member.beat("has nothing")
    member.beat("a topic twice", subscribed_topic_names=["left", "left"])
    member.beat("range", server_assignor="range")
    member.beat("uniform", server_assignor="uniform")
    talk.ask("described", describe_consumer("changing"))
    member.beat("another rack", rack_id="r1")
    member.beat("another rebalance timeout", rebalance_timeout_ms=1_000)
    talk.ask("a rack: described", describe_consumer("changing"))
    nothing = Consumer(talk, "nothing", "m1")
    nothing.join("no topics at all")
    nothing.beat("still none")
    talk.ask("no topics: described", describe_consumer("nothing"))


@CONSUMERS.story
def regular_expressions(talk: Talk) -> None:
    ready(talk)
    for name in ("regular-1", "regular-2", "irregular"):
        create(talk, name)
    member = Consumer(talk, "regex", "m1")
    joined = member.join("joins", subscribed_topic_names=None, subscribed_topic_regex="regular-.*")
    if not joined.assignment or not joined.assignment.topic_partitions:
        member.settled()
    talk.keep("owned", [str(len(partitions)) for partitions in member.owned.values()])
    member.beat("has them")
    talk.ask("described", describe_consumer("regex"))
    member.beat("none any more", subscribed_topic_regex="")
    member.beat("has none")
    member.beat("names beside it", subscribed_topic_names=["irregular"])
    member.beat("has it")
    talk.ask("described at last", describe_consumer("regex"))


@CONSUMERS.story
def static_members(talk: Talk) -> None:
    ready(talk)
    create(talk, "kept", 4)
    first, second = Consumer(talk, "static", "m1"), Consumer(talk, "static", "m2")
    first.join("the first joins", "kept", instance_id="one")
    second.join("the second joins", "kept", instance_id="two")
    first.beat("the first gives up")
    first.beat("the first has given up")
    second.beat("the second takes")
    second.beat("the second has taken")
    talk.ask("described", describe_consumer("static"))
    second.leave("the second restarts", LEAVE_FOR_A_WHILE, instance_id="two")
    talk.ask("while it is away: described", describe_consumer("static"))
    first.beat("the first hears nothing of it")
    again = Consumer(talk, "static", "m3")
    again.join("the second is back", "kept", instance_id="two")
    again.beat("it has what it had")
    talk.ask("when it is back: described", describe_consumer("static"))
    taken = comes("static", "m4", "kept", instance_id="two")
    talk.same("somebody else with its name", taken)
    again.leave("it leaves for good", instance_id="two")
    first.beat("the first gets all")
    talk.ask("at last: described", describe_consumer("static"))


@CONSUMERS.story
def offsets(talk: Talk) -> None:
    """Commits and fetches with the epoch of a member."""
    ready(talk)
    topic_id = create(talk, "counted", 2)
    member = Consumer(talk, "counts", "m1")
    member.join("joins", "counted")
    member.beat("has all")
    epoch = member.epoch
    mine = commit("counts", "counted", 1, member_id="m1", generation=epoch)
    talk.same("commits", mine, range(2, 10))
    talk.ask("commits by id", commit("counts", topic_id, 2, member_id="m1", generation=epoch))
    for wrong in (epoch - 1, epoch + 1, 0, -1):
        request = commit("counts", "counted", 3, member_id="m1", generation=wrong)
        talk.same(f"with epoch {wrong - epoch:+d}", request, range(2, 10))
    talk.same("of another", commit("counts", "counted", 4, member_id="m9", generation=epoch), [2, 8, 9])
    talk.same("of nobody", commit("counts", "counted", 4), [2, 8, 9])
    talk.ask("of nobody, by id", commit("counts", topic_id, 4))
    asked = {"counted": (0, 1)}
    talk.same("fetches", fetch_offsets("counts", asked, member_id="m1", epoch=epoch), [8, 9])
    talk.ask("fetches by id", fetch_offsets("counts", {topic_id: (0,)}, member_id="m1", epoch=epoch))
    for wrong in (epoch - 1, epoch + 1, -1):
        request = fetch_offsets("counts", asked, member_id="m1", epoch=wrong)
        talk.ask(f"fetches with epoch {wrong - epoch:+d}", request, 9)
    talk.ask("another fetches", fetch_offsets("counts", asked, member_id="m9", epoch=epoch), 9)
    talk.ask("another fetches by id", fetch_offsets("counts", {topic_id: (0,)}, member_id="m9", epoch=epoch))
    talk.ask("nobody fetches", fetch_offsets("counts", asked), 9)
    talk.ask("a member without an epoch", fetch_offsets("counts", asked, member_id="m1"), 9)
    talk.ask("an epoch without a member", fetch_offsets("counts", asked, epoch=epoch), 9)
    talk.ask("deletes what is subscribed", delete_offsets("counts", counted=(0,)))
    talk.ask("deletes the group", delete_groups("counts"))
    talk.same("described as a classic group", describe("counts"), [0, 5, 6])
    for states, kinds in (((), ()), (("Stable",), ()), ((), ("consumer",)), ((), ("classic",))):
        talk.ask(f"listed {states} {kinds}", listed(states, kinds))
    member.leave("leaves")
    talk.ask("commits after it left", mine, 9)
    talk.ask("nobody commits after it left", commit("counts", "counted", 9), 9)
    talk.ask("listed when empty", listed(("Empty",), ("Consumer",)))
    talk.ask("deletes offsets", delete_offsets("counts", counted=(0,)))
    talk.ask("deletes the empty group", delete_groups("counts"))
    talk.ask("described", describe_consumer("counts"))
