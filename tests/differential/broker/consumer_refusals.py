"""Groups of KIP-848 asked wrongly: the code of each refusal, and the group goes on."""

from typing import Any

from barnabas.base.ids import Uuid
from differential.broker.consumer_requests import (
    AT_ONCE,
    IN_ORDER,
    LEAVE,
    LEAVE_FOR_A_WHILE,
    Consumer,
    comes,
    create,
    heartbeat,
)
from differential.broker.group_requests import beat, describe_consumer, join, leave, ready, subscription, sync
from differential.broker.talk import Family, Talk

REFUSED_CONSUMERS = Family(
    "consumer-refusals", settings={**AT_ONCE, "group.consumer.max.size": 2}, settings_of_kafka=IN_ORDER
)
UNKNOWN_ID = Uuid(bytes(range(16)))
INT_MAX = 2**31 - 1


@REFUSED_CONSUMERS.story
def wrong_fields(talk: Talk) -> None:
    ready(talk)
    create(talk, "asked")
    wrong: dict[str, Any] = {
        "no group": comes("", "m", "asked"),
        "an empty instance id": comes("wrong", "m", "asked", instance_id=""),
        "an empty rack": comes("wrong", "m", "asked", rack_id=""),
        "no rebalance timeout": comes("wrong", "m", "asked", rebalance_timeout_ms=-1),
        "no partitions": comes("wrong", "m", "asked", owned=None),
        "partitions": comes("wrong", "m", "asked", owned={UNKNOWN_ID: [0]}),
        "no topics": comes("wrong", "m", subscribed_topic_names=None),
        "unknown assignor": comes("wrong", "m", "asked", server_assignor="fair"),
        "an empty assignor": comes("wrong", "m", "asked", server_assignor=""),
        "epoch -3": heartbeat("wrong", "m", -3),
        "leaves for a while without a name": heartbeat("wrong", "m", LEAVE_FOR_A_WHILE),
        "leaves an unknown group": heartbeat("wrong", "m", LEAVE),
        "an unknown group": heartbeat("wrong", "m", 1),
    }
    for step, body in wrong.items():
        talk.same(step, body)
    talk.ask("no member, in the second version", comes("wrong", "", "asked"))
    talk.same("no member, leaving", heartbeat("wrong", "", LEAVE))
    talk.same("no member, in an epoch", heartbeat("wrong", "", 3))
    talk.ask("nothing was made", describe_consumer("wrong"))
    talk.ask("an odd member id", comes("odd", "a b/c\u00e4", "asked"))
    talk.ask("a long member id", comes("odd-2", "m" * 300, "asked"))
    talk.ask("a rebalance timeout of nothing", comes("odd-3", "m", "asked", rebalance_timeout_ms=0))
    talk.ask("a negative rebalance timeout", comes("odd-4", "m", "asked", rebalance_timeout_ms=-5))
    talk.ask("an empty name of a topic", comes("odd-5", "m", "asked", ""))
    talk.ask("an odd name of a topic", comes("odd-6", "m", "a b/c"))


@REFUSED_CONSUMERS.story
def wrong_members(talk: Talk) -> None:
    ready(talk)
    topic_id = create(talk, "guarded", 2)
    member = Consumer(talk, "guards", "m1")
    member.join("joins", "guarded")
    member.beat("has all")
    epoch = member.epoch
    talk.same("unknown member", heartbeat("guards", "m9", epoch))
    talk.same("unknown member leaves", heartbeat("guards", "m9", LEAVE))
    for wrong in (epoch + 1, epoch - 1, INT_MAX):
        talk.same(f"epoch {wrong - epoch:+d}", heartbeat("guards", "m1", wrong))
        owned = heartbeat("guards", "m1", wrong, owned={topic_id: [0, 1]})
        talk.ask(f"epoch {wrong - epoch:+d} with what it has", owned)
        foreign = heartbeat("guards", "m1", wrong, owned={UNKNOWN_ID: [0]})
        talk.ask(f"epoch {wrong - epoch:+d} with what it has not", foreign)
    talk.ask("partitions that it has not", heartbeat("guards", "m1", epoch, owned={topic_id: [7]}))
    talk.ask("a topic that is not there", heartbeat("guards", "m1", epoch, owned={UNKNOWN_ID: [0]}))
    talk.ask("a name", heartbeat("guards", "m1", epoch, instance_id="named"))
    talk.ask("a name, leaving", heartbeat("guards", "m1", LEAVE, instance_id="named"))
    away = heartbeat("guards", "m1", LEAVE_FOR_A_WHILE, instance_id="named")
    talk.ask("a name, leaving for a while", away)
    talk.ask("unknown assignor", heartbeat("guards", "m1", epoch, server_assignor="fair"))
    talk.ask("joins again", comes("guards", "m1", "guarded"))
    talk.ask("described", describe_consumer("guards"))


@REFUSED_CONSUMERS.story
def wrong_instances(talk: Talk) -> None:
    ready(talk)
    create(talk, "instances", 2)
    member = Consumer(talk, "instances", "m1")
    member.join("joins", "instances", instance_id="one")
    member.beat("has all", instance_id="one")
    epoch = member.epoch
    talk.same("another with its name", comes("instances", "m2", "instances", instance_id="one"))
    talk.ask("another with its name, in an epoch", heartbeat("instances", "m2", epoch, instance_id="one"))
    talk.ask("another leaves with its name", heartbeat("instances", "m2", LEAVE, instance_id="one"))
    away = heartbeat("instances", "m2", LEAVE_FOR_A_WHILE, instance_id="one")
    talk.ask("another leaves for a while with its name", away)
    talk.ask("an unknown name", heartbeat("instances", "m1", epoch, instance_id="two"))
    talk.ask("an unknown name leaves", heartbeat("instances", "m1", LEAVE, instance_id="two"))
    talk.ask("its id without its name", heartbeat("instances", "m1", epoch))
    member.leave("leaves for a while", LEAVE_FOR_A_WHILE, instance_id="one")
    talk.ask("a heartbeat while away", heartbeat("instances", "m1", epoch, instance_id="one"))
    member.leave("leaves for a while again", LEAVE_FOR_A_WHILE, instance_id="one")
    back = Consumer(talk, "instances", "m3")
    back.join("is back with other topics", "nothing", instance_id="one")
    talk.ask("the one before", heartbeat("instances", "m1", epoch, instance_id="one"))
    back.beat("the new one", instance_id="one")
    talk.ask("described", describe_consumer("instances"))


@REFUSED_CONSUMERS.story
def wrong_expressions(talk: Talk) -> None:
    ready(talk)
    create(talk, "expressed")
    for step, regex in {
        "a bracket": "[",
        "a star": "*",
        "a parenthesis": "(",
        "a backreference": r"(a)\1",
        "a lookahead": "a(?!b)",
    }.items():
        request = comes("regex", "m", subscribed_topic_names=None, subscribed_topic_regex=regex)
        talk.ask(step, request)
    talk.ask("nothing was made", describe_consumer("regex"))
    member = Consumer(talk, "regex-2", "m1")
    member.join("joins", "expressed")
    talk.ask("a change to a bad one", heartbeat("regex-2", "m1", member.epoch, subscribed_topic_regex="["))
    member.beat("the member goes on")
    empty = comes("regex-3", "m", subscribed_topic_names=None, subscribed_topic_regex="")
    talk.ask("an empty one", empty)


@REFUSED_CONSUMERS.story
def too_many(talk: Talk) -> None:
    """More members than group.consumer.max.size."""
    ready(talk)
    create(talk, "small")
    talk.ask("the first", comes("small", "m1", "small"))
    talk.ask("the second", comes("small", "m2", "small"))
    talk.same("the third", comes("small", "m3", "small"))
    talk.ask("an instance", comes("small", "m3", "small", instance_id="one"))
    talk.ask("the second again", comes("small", "m2", "small"))
    classic = join("small", protocols={"range": subscription("small")})
    talk.same("a classic member", classic, [3, 9])


@REFUSED_CONSUMERS.story
def classic_requests(talk: Talk) -> None:
    """Of those who are no members, to a group of consumers."""
    ready(talk)
    create(talk, "modern")
    member = Consumer(talk, "modern", "m1")
    member.join("joins", "modern")
    member.beat("has all")
    talk.same("a heartbeat", beat("modern", "m1", member.epoch), [0, 4])
    talk.same("a heartbeat of a stranger", beat("modern", "m9", member.epoch), [0, 4])
    talk.same("a sync", sync("modern", "m1", member.epoch), [0, 5])
    talk.same("a sync of a stranger", sync("modern", "m9", member.epoch), [0, 5])
    talk.same("a stranger leaves", leave("modern", ("m9", None), ("", "x")), [3, 5])
    talk.same("another type", join("modern", protocol_type="connect", protocols={"v1": b""}), [3, 9])
    talk.same("no type", join("modern", protocol_type=""), [3, 9])
    talk.same("no protocols", join("modern", protocols={}), [3, 9])
    talk.same("no subscription", join("modern", protocols={"range": b""}), [3])
    talk.ask("an id to join with", join("modern", protocols={"range": subscription("modern")}))
    member.beat("still well")
    talk.ask("described", describe_consumer("modern"))
    stranger = join("modern", "m9", protocols={"range": subscription("modern")})
    talk.same("joins as a stranger", stranger, [3, 9])
    talk.same("joins with its id", join("modern", "m1", protocols={"range": subscription("modern")}), [9])
    member.beat("after that")
    member.leave("leaves")
    talk.same("an empty group: a heartbeat", beat("modern", "m1", 1), [4])
    talk.same("an empty group: a sync", sync("modern", "m1", 1), [5])
    talk.same("an empty group: leaves", leave("modern", ("m1", None)), [5])
