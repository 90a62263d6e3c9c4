"""Groups after their coordinator was started again: what it has stored is what it goes on with."""

from differential.broker.classic_groups import both_sync, second_comes
from differential.broker.consumer_requests import AT_ONCE, IN_ORDER, Consumer, create
from differential.broker.group_admin import delete, listed
from differential.broker.group_requests import Member, alone, describe, describe_consumer, ready
from differential.broker.offset_requests import commit, fetch_offsets
from differential.broker.talk import Family, Talk

GROUP_RESTARTS = Family("group-restarts", settings=AT_ONCE, settings_of_kafka=IN_ORDER)


@GROUP_RESTARTS.story
def all_kinds(talk: Talk) -> None:
    ready(talk)
    create(talk, "lasting", 4)
    first, second = alone(talk, "first", "stable"), Member(talk, "stable")
    second_comes(talk, "two", first, second)
    both_sync(talk, "two", first, second)
    talk.ask("a member commits", commit("stable", "lasting", 7, 0, 3, member_id=first.id, generation=2), 9)
    static = alone(talk, "static", "static", instance_id="one")
    unsynced = Member(talk, "unsynced")
    unsynced.join("unsynced: joins")
    left = alone(talk, "left", "left")
    left.leave("left: leaves")
    talk.ask("somebody commits", commit("simple", "lasting", 9, 1, note="n", leader_epoch=0), 9)
    talk.ask("another commits", commit("deleted", "lasting", 9, 1), 9)
    talk.ask("and is deleted", delete("deleted"))
    modern, other = Consumer(talk, "modern", "m1"), Consumer(talk, "modern", "m2")
    modern.join("a consumer joins", "lasting", instance_id="fixed")
    modern.beat("the consumer has all")
    other.join("another one joins", "lasting", rack_id="r1", server_assignor="range")
    modern.beat("the consumer is told to give up")

    talk.restart()
    ready(talk)

    names = ("stable", "static", "unsynced", "left", "simple", "deleted")
    talk.ask("listed", listed())
    for name in names:
        talk.ask(f"{name}: described", describe(name))
        talk.ask(f"{name}: offsets", fetch_offsets(name))
    talk.ask("modern: described", describe_consumer("modern"))
    first.beat("the first is well")
    second.beat("the second is well")
    second.sync("the second may ask for what it has")
    static.beat("the instance is well")
    unsynced.beat("the one that had not synced")
    left.beat("the one that had left")
    modern.beat("the consumer has given up")
    other.beat("the other one gets its part")
    other.beat("the other one has its part")
    talk.ask("modern: described again", describe_consumer("modern"))
    again = Member(talk, "static", instance_id="one")
    again.join("the instance restarts")
