"""Groups that go over from one protocol to the other while they run."""

from barnabas.protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
)
from barnabas.protocol.stored.framing import encode_value
from differential.broker.consumer_requests import AT_ONCE, IN_ORDER, Consumer, comes, create
from differential.broker.group_admin import listed
from differential.broker.group_requests import (
    Member,
    alone,
    describe,
    describe_consumer,
    join,
    leave,
    ready,
    subscription,
)
from differential.broker.offset_requests import commit, fetch_offsets
from differential.broker.talk import Family, Talk

MIGRATION = Family("group-migration", settings=AT_ONCE, settings_of_kafka=IN_ORDER)
REBALANCING = 27


def assigned(talk: Talk, step: str, group: str, topic: str, *partitions: int, **fields: str) -> Member:
    """A classic group of one who has these partitions."""
    member = Member(talk, group, protocols={"range": subscription(topic)}, **fields)
    member.join(f"{step}: joins")
    member.sync(f"{step}: syncs", {member.id: assignment(topic, *partitions)})
    return member


def assignment(topic: str, *partitions: int) -> bytes:
    given = ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=list(partitions))
    return encode_value(ConsumerProtocolAssignment(assigned_partitions=[given]), 1)


@MIGRATION.story
def up_and_down(talk: Talk) -> None:
    """A consumer comes to a classic member, the classic one goes; and the other way round."""
    ready(talk)
    create(talk, "moved", 4)
    classic = assigned(talk, "classic", "moves", "moved", 0, 1, 2, 3)
    talk.ask("commits", commit("moves", "moved", 5, member_id=classic.id, generation=1), 9)
    modern = Consumer(talk, "moves", "m1")
    modern.join("a consumer comes", "moved")
    talk.ask("gone over: described", describe_consumer("moves"))
    talk.same("gone over: as a classic group", describe("moves"), [5, 6])
    talk.ask("gone over: listed", listed())
    modern.beat("the consumer waits")
    classic.beat("the classic member is told")
    classic.protocols = {"range": subscription("moved", owned={"moved": (0, 1, 2, 3)})}
    classic.join("the classic member joins again")
    classic.sync("the classic member gets its part")
    classic.beat("the classic member is told to give up")
    modern.beat("the consumer still waits")
    classic.protocols = {"range": subscription("moved", owned={"moved": (0, 1)})}
    classic.join("the classic member has given up")
    classic.sync("the classic member syncs")
    modern.beat("the consumer gets its part")
    modern.beat("the consumer has its part")
    classic.beat("the classic member is well")
    talk.ask("shared: described", describe_consumer("moves"))
    talk.ask(
        "commits in the new group",
        commit("moves", "moved", 6, member_id=classic.id, generation=classic.generation),
        9,
    )
    modern.leave("the consumer leaves")
    talk.same("gone back: described", describe("moves"), [5, 6])
    talk.ask("gone back: as a consumer group", describe_consumer("moves"))
    classic.beat("the classic member is told again")
    classic.join("the classic member joins at last")
    classic.sync("the classic member syncs at last", {classic.id: assignment("moved", 0, 1, 2, 3)})
    talk.ask("offsets are kept", fetch_offsets("moves"))


@MIGRATION.story
def the_last_classic_member(talk: Talk) -> None:
    ready(talk)
    create(talk, "modernised", 2)
    classic = assigned(talk, "classic", "modernises", "modernised", 0, 1)
    modern = Consumer(talk, "modernises", "m1")
    modern.join("a consumer comes", "modernised")
    classic.leave("the classic member leaves")
    modern.beat("the consumer gets all")
    modern.beat("the consumer has all")
    talk.ask("described", describe_consumer("modernises"))
    classic.beat("a heartbeat of the classic member")


@MIGRATION.story
def a_classic_member_comes(talk: Talk) -> None:
    """To a group of one consumer."""
    ready(talk)
    create(talk, "aged", 4)
    modern = Consumer(talk, "ages", "m1")
    modern.join("a consumer", "aged")
    modern.beat("the consumer has all")
    classic = Member(talk, "ages", protocols={"range": subscription("aged")})
    classic.join("a classic member comes")
    classic.sync("the classic member syncs")
    modern.beat("the consumer gives up")
    modern.beat("the consumer has given up")
    classic.beat("the classic member is told")
    classic.join("the classic member joins again")
    classic.sync("the classic member gets its part")
    classic.beat("the classic member is well")
    talk.ask("described", describe_consumer("ages"))
    modern.leave("the consumer leaves")
    talk.ask("gone back: described", describe("ages"))
    classic.beat("the classic member is told of it")
    classic.join("the classic member joins at last")
    classic.sync("the classic member syncs at last", {classic.id: assignment("aged", 0, 1, 2, 3)})
    classic.leave("the classic member leaves")
    talk.ask("described at last", describe("ages"))


@MIGRATION.story
def empty_groups(talk: Talk) -> None:
    """Without members a group is whatever the next one is."""
    ready(talk)
    create(talk, "vacant")
    classic = assigned(talk, "classic", "vacant-1", "vacant", 0)
    classic.leave("the classic member leaves")
    modern = Consumer(talk, "vacant-1", "m1")
    modern.join("a consumer comes", "vacant")
    talk.ask("described", describe_consumer("vacant-1"))
    modern.leave("the consumer leaves")
    alone(talk, "classic again", "vacant-1", protocols={"range": subscription("vacant")})
    talk.ask("described again", describe("vacant-1"))
    talk.ask("commits alone", commit("vacant-2", "vacant", 3), 9)
    talk.ask("a consumer comes to offsets", comes("vacant-2", "m1", "vacant"))
    talk.ask("the offsets are kept", fetch_offsets("vacant-2"))
    talk.ask("refused by an empty one", join("vacant-1", "nobody"), 9)


@MIGRATION.story
def static_members(talk: Talk) -> None:
    """The same instance in both protocols."""
    ready(talk)
    create(talk, "constant", 2)
    classic = assigned(talk, "classic", "constant", "constant", 0, 1, instance_id="one")
    modern = Consumer(talk, "constant", "m1")
    modern.join("it comes again as a consumer", "constant", instance_id="one")
    talk.ask("described", describe_consumer("constant"))
    classic.beat("the classic one is fenced")
    modern.beat("the consumer has all", instance_id="one")
    back = Member(talk, "constant", instance_id="one", protocols={"range": subscription("constant")})
    back.join("it comes again as a classic member")
    talk.same("described again", describe("constant"), [6])
    back.sync("it syncs", {back.id: assignment("constant", 0, 1)})
    modern.beat("the consumer is fenced", instance_id="one")
    talk.ask("leaves by name", leave("constant", ("", "one")))


@MIGRATION.story
def groups_that_stay(talk: Talk) -> None:
    """What is no group of consumers cannot become one."""
    ready(talk)
    create(talk, "stays")
    create(talk, "other")
    answer = talk.ask("workers", join("workers", protocol_type="connect", protocols={"v1": b""}), 3)
    talk.ask("a consumer comes to workers", comes("workers", "m1", "stays"))
    talk.ask("still workers", describe("workers"))
    talk.ask("leaves", leave("workers", (answer.member_id, None)))
    talk.ask("a consumer comes to empty workers", comes("workers", "m1", "stays"))
    odd = Member(talk, "odd", protocols={"custom": subscription("stays", user_data=b"mine")})
    odd.join("user data")
    odd.sync("user data: syncs", {odd.id: assignment("stays", 0)})
    talk.ask("a consumer comes to user data", comes("odd", "m1", "stays"))
    talk.ask("user data: described", describe("odd"))
    torn = Member(talk, "torn", protocols={"range": b""})
    torn.join("no subscription")
    torn.sync("no subscription: syncs", {torn.id: b""})
    talk.ask("a consumer comes to no subscription", comes("torn", "m1", "stays"))
    pending = Member(talk, "young", protocols={"range": subscription("stays")})
    pending.join("not synced")
    talk.ask("a consumer comes before the assignment", comes("young", "m1", "other"))
    talk.ask("before the assignment: described", describe_consumer("young"))
