"""Groups from outside: FindCoordinator, ListGroups, DescribeGroups, DeleteGroups, ConsumerGroupDescribe."""

from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
from barnabas.protocol.messages.group_admin import DeleteGroupsRequest, ListGroupsRequest
from differential.broker.group_requests import (
    AT_ONCE,
    Member,
    alone,
    describe,
    describe_consumer,
    join,
    ready,
)
from differential.broker.offset_requests import commit, fetch_offsets
from differential.broker.talk import Family, Talk

GROUPS = Family("group-admin", settings=AT_ONCE)
GROUP, TRANSACTION, SHARE = 0, 1, 2
ONE_KEY, SEVERAL_KEYS = range(4), range(4, 7)


def find(version: int, *keys: str, kind: int = GROUP) -> FindCoordinatorRequest:
    if version in SEVERAL_KEYS:
        return FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))
    return FindCoordinatorRequest(key=keys[0], key_type=kind)


def listed(states: tuple[str, ...] = (), kinds: tuple[str, ...] = ()) -> ListGroupsRequest:
    return ListGroupsRequest(states_filter=list(states), types_filter=list(kinds))


def delete(*groups: str) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=list(groups))


@GROUPS.story
def before_the_first(talk: Talk) -> None:
    """Nobody has asked about groups yet: __consumer_offsets does not exist."""
    talk.same("listed", listed(), [0, 5])
    talk.same("described", describe("early"), [0, 6])
    talk.ask("described as a consumer group", describe_consumer("early"))
    talk.ask("joins", join("early"))
    talk.ask("fetches", fetch_offsets("early"))
    talk.ask("deleted", delete("early"))
    talk.create("early")
    talk.ask("commits", commit("early", "early"), 9)


@GROUPS.story
def find_coordinators(talk: Talk) -> None:
    ready(talk)
    talk.each("one", lambda version: find(version, "team"))
    talk.each("no name", lambda version: find(version, ""))
    talk.each("a long name", lambda version: find(version, "g" * 10_000), [0, 6])
    talk.each("two", lambda version: find(version, "team", "crew"), SEVERAL_KEYS)
    talk.each("one twice", lambda version: find(version, "team", "team"), SEVERAL_KEYS)
    talk.each("none", lambda version: find(version), SEVERAL_KEYS)
    for kind in (3, -1, 127):
        talk.each(f"of type {kind}", lambda version, kind=kind: find(version, "x", kind=kind), range(1, 7))
    talk.each(
        "a share group, before it is known", lambda version: find(version, "x", kind=SHARE), range(1, 6)
    )


@GROUPS.story
def listing(talk: Talk) -> None:
    ready(talk)
    talk.create("listed")
    alone(talk, "stable", "list-stable")
    Member(talk, "list-completing").join("completing")
    Member(talk, "list-pending").take_id("pending")
    gone = alone(talk, "empty", "list-empty")
    gone.leave("empty: leaves")
    talk.ask("commits", commit("list-simple", "listed"), 9)
    talk.same("all", listed())
    for state in (
        "Stable", "stable", "STABLE", "Empty", "CompletingRebalance", "completingrebalance", "Dead",
        "PreparingRebalance", "Assigning", "Reconciling", "no-such-state", "", " Stable ",
    ):  # fmt: skip
        talk.same(f"in state {state!r}", listed((state,)), [4, 5])
    talk.same("in two states", listed(("Stable", "Empty")), [4, 5])
    for kind in (
        "classic",
        "Classic",
        "CLASSIC",
        "consumer",
        "share",
        "streams",
        "no-such-type",
        "",
        " classic",
    ):
        talk.ask(f"of type {kind!r}", listed((), (kind,)))
    talk.ask("of two types", listed((), ("classic", "consumer")))
    talk.ask("of a type that is none and one that is", listed((), ("no-such-type", "classic")))
    talk.ask("of a state and a type", listed(("Empty",), ("classic",)))


@GROUPS.story
def describing(talk: Talk) -> None:
    ready(talk)
    talk.create("described")
    member = alone(talk, "one", "seen")
    talk.ask("commits", commit("seen-simple", "described"), 9)
    talk.same("one", describe("seen"))
    talk.same("one that only commits", describe("seen-simple"))
    talk.same("with operations", describe("seen", operations=True), range(3, 7))
    talk.same("unknown", describe("nobody"))
    talk.same("unknown with operations", describe("nobody", operations=True), range(3, 7))
    talk.same("no name", describe(""))
    talk.same("none", describe())
    talk.same("one twice, one unknown", describe("seen", "nobody", "seen"), [0, 6])
    talk.same("as a consumer group", describe_consumer("seen"))
    talk.same("as a consumer group, unknown", describe_consumer("nobody", operations=True))
    talk.same("as a consumer group, no name", describe_consumer(""))
    talk.same("as a consumer group, none", describe_consumer())
    member.join("joins again")
    talk.same("while completing", describe("seen"))


@GROUPS.story
def deleting(talk: Talk) -> None:
    ready(talk)
    talk.create("deletes")
    member = alone(talk, "one", "del-full")
    Member(talk, "del-pending").take_id("pending")
    talk.same("with members", delete("del-full"))
    member.beat("still well")
    talk.same("with a member that has an id only", delete("del-pending"), [2])
    talk.same("unknown", delete("nobody"))
    talk.same("no name", delete(""))
    talk.same("none", delete())
    for version in range(3):
        talk.ask(f"commits for v{version}", commit("del-simple", "deletes", 3), 9)
        talk.ask(f"one that only commits v{version}", delete("del-simple"), version)
        talk.ask(f"its offsets v{version}", fetch_offsets("del-simple"))
    member.leave("leaves")
    commits = commit("del-other", "deletes", 4)
    talk.ask("another commits", commits, 9)
    talk.ask("several", delete("del-full", "nobody", "del-other", "del-full", ""))
    talk.ask("described", describe("del-full", "del-other"))
    talk.ask("again", delete("del-full"))
    member.beat("a heartbeat after it")
    back = alone(talk, "one comes back", "del-full")
    back.beat("it begins anew")
