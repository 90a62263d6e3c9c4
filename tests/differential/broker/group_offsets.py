"""Committed offsets: OffsetCommit, OffsetFetch, OffsetDelete, of members and of those who are none."""

from barnabas.base.ids import Uuid
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
)
from differential.broker.group_requests import AT_ONCE, alone, describe, join, leave, ready, subscription
from differential.broker.offset_requests import Partitions, commit, fetch_offsets, of_group
from differential.broker.talk import Family, Talk

COMMITTED = Family("group-offsets", settings=AT_ONCE)
NAMES, IDS = range(2, 10), [10]
UNKNOWN_ID = Uuid(bytes(range(16)))
LONG_MAX = 2**63 - 1


def delete(group: str, **topics: tuple[int, ...]) -> OffsetDeleteRequest:
    rows = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
        )
        for name, indexes in topics.items()
    ]
    return OffsetDeleteRequest(group_id=group, topics=rows)


def together(*commits: OffsetCommitRequest) -> OffsetCommitRequest:
    """The first one, with the topics of the others."""
    commits[0].topics = [topic for one in commits for topic in one.topics]
    return commits[0]


@COMMITTED.story
def without_members(talk: Talk) -> None:
    ready(talk)
    topic_id = talk.create("plain", 3)
    for version in NAMES:
        group = f"plain-{version}"
        talk.ask(f"committed v{version}", commit(group, "plain", 10 + version, 0, 2, note="n"), version)
        talk.ask(f"committed v{version}: described", describe(group))
    talk.ask("committed v10", commit("plain-10", topic_id, 20, 0, 2, note="n"), 10)
    for version in range(1, 10):
        asked: Partitions = {"plain": (0, 1, 2)}
        talk.ask(f"fetched v{version}", fetch_offsets("plain-9", asked, version=version), version)
    talk.ask("fetched v10", fetch_offsets("plain-9", {topic_id: (0, 1, 2)}))
    for version in range(2, 11):
        talk.ask(f"all fetched v{version}", fetch_offsets("plain-10", version=version), version)
    again = commit("plain-9", "plain", 5, 0, note="", leader_epoch=0, retention_ms=1000)
    talk.same("committed again", again, NAMES)
    talk.ask("fetched again", fetch_offsets("plain-9"), 9)
    leader = commit("plain-9", "plain", 6, 1, leader_epoch=7)
    talk.same("with a leader epoch", leader, [5, 6, 9])
    for version in (4, 5, 9):
        asked = fetch_offsets("plain-9", {"plain": (1,)}, version=version)
        talk.ask(f"the leader epoch v{version}", asked, version)


@COMMITTED.story
def what_is_committed(talk: Talk) -> None:
    ready(talk)
    topic_id = talk.create("values", 2)
    for offset in (0, -1, -2, LONG_MAX, -(2**63)):
        talk.ask(f"offset {offset}", commit("values", "values", offset), 9)
        talk.ask(f"offset {offset}: fetched", fetch_offsets("values"), 9)
    for epoch in (-1, -2, 0, 2**31 - 1):
        talk.ask(f"leader epoch {epoch}", commit("values", "values", 1, leader_epoch=epoch), 9)
        talk.ask(f"leader epoch {epoch}: fetched", fetch_offsets("values"), 9)
    for size in (4096, 4097, 32_767):
        talk.same(f"{size} characters", commit("values", "values", size, note="x" * size), [2, 9])
    talk.ask("2048 characters of two bytes", commit("values", "values", 2, note="\u00e4" * 2049), 9)
    talk.ask("the last note", fetch_offsets("values"), 9)
    mixed = together(commit("values", "values", 3, 0, note="x" * 5000), commit("values", "values", 4, 1))
    talk.ask("one note that is too long", mixed, 9)
    talk.same("no note", commit("values", "values", 5, note=None), [2, 9])
    talk.ask("no note: fetched", fetch_offsets("values", {"values": (0, 1)}), 9)
    talk.ask("no note: fetched by id", fetch_offsets("values", {topic_id: (0, 1)}))
    talk.ask("a partition twice", together(commit("values", "values", 6), commit("values", "values", 7)), 9)
    talk.ask("a partition twice: fetched", fetch_offsets("values"), 9)
    talk.ask("a partition twice in one topic", commit("values", "values", 8, 0, 0), 9)
    for retention_ms in (0, 1, LONG_MAX):
        request = commit("values", "values", 9, retention_ms=retention_ms)
        talk.ask(f"retention {retention_ms}", request, 4)


@COMMITTED.story
def what_does_not_exist(talk: Talk) -> None:
    ready(talk)
    topic_id = talk.create("exists", 2)
    talk.same("unknown topic", commit("absent", "nobody-made-this"), NAMES)
    talk.same("unknown partition", commit("absent", "exists", 1, 2), NAMES)
    talk.same("negative partition", commit("absent", "exists", 1, -1), [2, 9])
    talk.ask("unknown id", commit("absent", UNKNOWN_ID))
    talk.ask("no id", commit("absent", Uuid(bytes(16))))
    talk.ask("unknown partition by id", commit("absent", topic_id, 1, 2))
    talk.ask("the group is not made by that", describe("absent"))
    talk.same("some exist", commit("partly", "exists", 1, 0, 2, 1), [2, 9])
    talk.ask("some exist, by id", commit("partly", topic_id, 2, 0, 2, 1))
    both = together(commit("partly", "nobody-made-this"), commit("partly", "exists", 3))
    talk.ask("one topic exists", both, 9)
    both_ids = together(commit("partly", UNKNOWN_ID), commit("partly", topic_id, 4))
    talk.ask("one topic exists, by id", both_ids)
    talk.same("no topics", OffsetCommitRequest(group_id="empty", topics=[]))
    talk.same("no group", commit("", "exists"), NAMES)
    talk.ask("no group, by id", commit("", topic_id))
    talk.ask("no group: fetched", fetch_offsets("", {"exists": (0,)}), 9)
    talk.same("an empty name", commit("absent", ""), [2, 9])
    talk.ask("the offsets topic itself", commit("absent", "__consumer_offsets"), 9)
    for version in range(1, 10):
        asked: Partitions = {"exists": (0, 1, 2, -1), "nobody-made-this": (0,)}
        talk.ask(f"fetched v{version}", fetch_offsets("partly", asked, version=version), version)
    talk.ask("fetched by id", fetch_offsets("partly", {topic_id: (0, 1, 2, -1), UNKNOWN_ID: (0,)}))
    talk.ask("fetched without an id", fetch_offsets("partly", {Uuid(bytes(16)): (0,)}))
    for version in range(1, 10):
        nothing = fetch_offsets("nobody", {"exists": (0,)}, version=version)
        talk.ask(f"of an unknown group v{version}", nothing, version)
    talk.each(
        "all of an unknown group", lambda version: fetch_offsets("nobody", version=version), range(2, 11)
    )
    talk.each("nothing fetched", lambda version: fetch_offsets("partly", {}, version=version), range(1, 11))
    talk.ask("no partitions", fetch_offsets("partly", {"exists": ()}), 9)
    talk.ask("a partition twice", fetch_offsets("partly", {"exists": (0, 0)}), 9)


@COMMITTED.story
def several_groups(talk: Talk) -> None:
    ready(talk)
    topic_id = talk.create("shared")
    talk.ask("one commits", commit("several-1", "shared", 1), 9)
    talk.ask("two commits", commit("several-2", "shared", 2), 9)

    def fetch(*groups: object) -> OffsetFetchRequest:
        return OffsetFetchRequest(topics=[], groups=list(groups))  # type: ignore[arg-type]

    named = [of_group("several-1", {"shared": (0,)}), of_group("several-2"), of_group("nobody")]
    talk.same("three", fetch(*named), [8, 9])
    talk.ask("by id", fetch(of_group("several-1", {topic_id: (0,)}), of_group("several-2")))
    talk.same("one twice", fetch(of_group("several-1"), of_group("several-1")), [8, 10])
    talk.same("none", fetch(), range(8, 11))
    talk.same("one without a name", fetch(of_group(""), of_group("several-1")), [8, 10])
    for version in range(7, 11):
        stable = fetch_offsets("several-1", version=version, stable=True)
        talk.ask(f"stable v{version}", stable, version)
    talk.ask("a member of no group", fetch(of_group("several-1", member_id="m", epoch=1)), 9)
    talk.ask("a member of an unknown group", fetch(of_group("nobody", member_id="m", epoch=1)), 9)


@COMMITTED.story
def of_members(talk: Talk) -> None:
    ready(talk)
    topic_id = talk.create("owned")
    member = alone(talk, "one", "members")
    mine = commit("members", "owned", 1, member_id=member.id, generation=1)
    talk.same("its own", mine, NAMES)
    by_id = commit("members", topic_id, 2, member_id=member.id, generation=1)
    talk.ask("its own, by id", by_id)
    talk.same("of nobody", commit("members", "owned", 3), NAMES)
    talk.ask("of nobody, by id", commit("members", topic_id, 3))
    talk.same("unknown member", commit("members", "owned", 4, member_id="x", generation=1), NAMES)
    talk.same("no member", commit("members", "owned", 4, generation=1), NAMES)
    for generation in (0, 2, -1, 2**31 - 1):
        wrong = commit("members", "owned", 5, member_id=member.id, generation=generation)
        talk.same(f"generation {generation}", wrong, [2, 8, 9])
        talk.ask(f"generation {generation}, by id", commit("members", topic_id, 5, generation=generation))
    named = commit("members", "owned", 6, member_id=member.id, generation=1, instance_id="nobody")
    talk.same("an instance id of nobody", named, range(7, 10))
    talk.ask("fetched", fetch_offsets("members"))
    fetch = fetch_offsets("members", {"owned": (0,)}, member_id=member.id, epoch=1)
    talk.same("fetched by the member", fetch, [9])
    wrong_fetch = fetch_offsets("members", {"owned": (0,)}, member_id="x", epoch=1)
    talk.same("fetched by another", wrong_fetch, [9])
    talk.ask("an unknown group with a generation", commit("unknown", "owned", generation=3), 9)
    talk.ask("an unknown group with a member", commit("unknown", "owned", member_id="m", generation=-1), 9)
    talk.ask("an unknown group with both", commit("unknown", "owned", member_id="m", generation=0), 9)
    talk.ask("both, by id", commit("unknown", topic_id, member_id="m", generation=0))
    talk.ask("leaves", leave("members", (member.id, None)))
    talk.ask("after it left", mine, 9)
    talk.ask("of nobody, after it left", commit("members", "owned", 9), 9)


@COMMITTED.story
def deleting(talk: Talk) -> None:
    ready(talk)
    talk.create("deleted", 3)
    talk.create("subscribed", 2)
    talk.ask("commits", commit("deleting", "deleted", 1, 0, 1, 2), 9)
    talk.ask("no group", delete("", deleted=(0,)))
    talk.ask("unknown group", delete("nobody", deleted=(0,)))
    talk.ask("unknown group, unknown topic", delete("nobody", nothing=(0,)))
    talk.ask("unknown group, nothing", delete("nobody"))
    talk.ask("unknown topic", delete("deleting", nothing=(0,)))
    talk.ask("unknown partition", delete("deleting", deleted=(3, -1)))
    talk.ask("nothing", delete("deleting"))
    talk.ask("no partitions", delete("deleting", deleted=()))
    talk.ask("one that has none", delete("deleting", subscribed=(0,)))
    talk.ask("some", delete("deleting", deleted=(0, 1, 5), nothing=(0,)))
    talk.ask("some are left", fetch_offsets("deleting"))
    talk.ask("the same again", delete("deleting", deleted=(0,)))
    talk.ask("the last", delete("deleting", deleted=(2,)))
    talk.ask("nothing is left", describe("deleting"))
    member = alone(talk, "a member", "subscribers", protocols={"range": subscription("subscribed")})
    mine = commit("subscribers", "subscribed", 1, 0, 1, member_id=member.id, generation=1)
    other = commit("subscribers", "deleted", 1, 0, member_id=member.id, generation=1)
    talk.ask("a member commits", together(mine, other), 9)
    talk.ask("of a subscribed topic", delete("subscribers", subscribed=(0, 7), deleted=(0,)))
    talk.ask("of a subscribed topic: fetched", fetch_offsets("subscribers"))
    other_type = join("tasks", protocol_type="connect", protocols={"v1": b""})
    talk.ask("a worker joins", other_type, 3)
    talk.ask("of a group of another type", delete("tasks", deleted=(0,)))
    member.leave("the member leaves")
    talk.ask("of a topic that was subscribed", delete("subscribers", subscribed=(0,)))
    talk.ask("at last", fetch_offsets("subscribers"))


@COMMITTED.story
def topics_that_go(talk: Talk) -> None:
    """Offsets go with their topic, and do not come back with its name."""
    ready(talk)
    before = talk.create("brief", 2)
    talk.ask("commits", commit("brief", "brief", 5, 0, 1), 9)
    talk.delete("brief")
    gone = fetch_offsets("brief", {"brief": (0,)})
    talk.until(gone, 9, lambda answer: answer.groups[0].topics[0].partitions[0].committed_offset == -1)
    talk.ask("fetched after it went", gone, 9)
    talk.ask("fetched by its id", fetch_offsets("brief", {before: (0,)}))
    talk.ask("all after it went", fetch_offsets("brief"))
    talk.ask("commits after it went", commit("brief", before, 5))
    after = talk.create("brief", 2)
    talk.ask("fetched of the new one", fetch_offsets("brief", {after: (0,)}))
    talk.ask("commits of the old one", commit("brief", before, 5))
    talk.ask("commits of the new one", commit("brief", after, 6))
    talk.ask("all", fetch_offsets("brief"))
    talk.ask("described", describe("brief"))
