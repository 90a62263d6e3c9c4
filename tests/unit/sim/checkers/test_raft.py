"""The raft checker accepts what raft may do, and finds each breach of its rules, in hand-made histories."""

from typing import Any

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.raft.effects import (
    BecameLeader,
    HighWatermarkAdvanced,
    LostLeadership,
    SendFetch,
    TruncateTo,
    VoteAnswer,
)
from barnabas.raft.facts import Election, OffsetAndEpoch
from barnabas.raft.quorum_state import format_quorum_state
from barnabas.sim.checkers.raft import NodeView, RaftChecker
from barnabas.sim.history import Operation
from barnabas.sim.quorum.voter import Applied, Loaded


class Story:
    """Probes in the order of a list, from nodes n1, n2 and n3."""

    def __init__(self) -> None:
        self.checker = RaftChecker()
        for node in ("n1", "n2", "n3"):
            self.checker.started(node)
        self.ends = {"n1": 100, "n2": 100, "n3": 100}
        self.elections = {node: Election(5) for node in self.ends}
        self.on_disk = dict(self.elections)
        self.durable_log: bytes | None = b"records"

    def say(self, node: str, about: Any) -> "Story":
        view = NodeView(
            election=lambda: self.elections[node],
            end_offset=lambda: self.ends[node],
            durable=lambda path: (
                self.durable_log if path == "log" else format_quorum_state(self.on_disk[node], [1, 2, 3])
            ),
            active_segment=lambda: ("log", b"records"),
        )
        self.checker.saw(0, node, "probe", about, view)
        return self

    @property
    def wrong(self) -> list[str]:
        return [violation.text for violation in self.checker.violations]


def applied(base: int, *values: tuple[str, str], epoch: int = 1, last: int | None = None) -> Applied:
    end = base + max(1, len(values)) - 1 if last is None else last
    return Applied(base_offset=base, last_offset=end, epoch=epoch, values=values)


A, B, C = ("k", "a"), ("k", "b"), ("l", "c")


def test_nodes_that_apply_the_same_records_are_right() -> None:
    story = Story()
    for node in ("n2", "n1", "n3"):
        story.say(node, applied(0)).say(node, applied(1, A, B)).say(node, applied(3, C, epoch=2))

    assert story.wrong == []
    assert story.checker.state_at(3) == {"k": "b"}
    assert story.checker.state_at(4) == {"k": "b", "l": "c"}


@pytest.mark.parametrize(
    ("other", "wrong"),
    [
        (applied(0, B), "is committed"),
        (applied(0, A, epoch=2), "is committed"),
        (applied(1, A), "applies offset 1, expected 0"),
    ],
    ids=["another value", "another epoch", "a gap"],
)
def test_nodes_that_apply_different_records_are_wrong(other: Applied, wrong: str) -> None:
    story = Story().say("n1", applied(0, A)).say("n2", other)

    assert len(story.wrong) >= 1
    assert wrong in story.wrong[0]


def test_a_restarted_node_begins_again() -> None:
    story = Story().say("n1", applied(0, A))
    story.checker.started("n1")

    assert story.say("n1", applied(0, A)).wrong == []
    assert "applies offset 0, expected 1" in story.say("n1", applied(0, A)).wrong[0]


@pytest.mark.parametrize(
    ("snapshot", "state", "wrong"),
    [
        ((2, 1), [B], ""),
        ((1, 1), [A], ""),
        ((2, 1), [A], "loads a snapshot of 2 with"),
        ((2, 2), [B], "the last record has"),
        ((3, 1), [B], "only 2 offsets are committed"),
    ],
)
def test_a_snapshot_equals_the_fold_of_the_committed_records(
    snapshot: tuple[int, int], state: list[tuple[str, str]], wrong: str
) -> None:
    story = Story().say("n1", applied(0, A, B))

    story.say("n2", Loaded(snapshot=OffsetAndEpoch(*snapshot), state=tuple(state)))

    assert (story.wrong == []) == (wrong == "")
    assert wrong in "".join(story.wrong)


def test_an_epoch_has_one_leader() -> None:
    story = Story().say("n1", BecameLeader(epoch=1, start=0)).say("n2", BecameLeader(epoch=2, start=0))
    assert story.wrong == []

    story.say("n3", BecameLeader(epoch=2, start=0))

    assert story.wrong == ["leads in epoch 2, but n2 was its leader"]


def test_a_leader_has_everything_that_is_committed() -> None:
    story = Story().say("n1", applied(0, A, B))
    story.ends["n2"] = 1

    story.say("n2", BecameLeader(epoch=2, start=1))

    assert story.wrong == ["leads with a log of 1, but 2 are committed"]


def test_a_high_watermark_does_not_go_back_nor_beyond_the_log() -> None:
    story = Story().say("n1", HighWatermarkAdvanced(5)).say("n1", HighWatermarkAdvanced(7))
    assert story.wrong == []

    story.say("n1", HighWatermarkAdvanced(6)).say("n2", HighWatermarkAdvanced(101))

    assert story.wrong == [
        "high watermark goes back from 7 to 6",
        "high watermark 101 is above the log end 100",
    ]


def test_applied_records_are_not_truncated() -> None:
    story = Story().say("n1", applied(0, A, B)).say("n1", TruncateTo(2)).say("n2", TruncateTo(0))
    assert story.wrong == []

    story.say("n1", TruncateTo(1))

    assert story.wrong == ["truncates to 1, but has applied everything below 2"]


def test_a_leader_commits_records_of_its_own_epoch() -> None:
    story = Story().say("n1", BecameLeader(epoch=2, start=5)).say("n1", HighWatermarkAdvanced(6))
    # A follower does not count, and neither does a leader that has resigned.
    story.say("n2", HighWatermarkAdvanced(3)).say("n1", LostLeadership(2))
    assert story.wrong == []

    story.say("n3", BecameLeader(epoch=3, start=7)).say("n3", HighWatermarkAdvanced(7))

    assert story.wrong == ["commits up to 7, but its epoch starts at 7"]


@pytest.mark.parametrize(
    ("durable", "right"), [(b"records", True), (b"records and more", True), (b"recor", False), (None, False)]
)
def test_a_follower_acknowledges_synced_records(durable: bytes | None, right: bool) -> None:
    story = Story()
    story.durable_log = durable

    story.say("n1", SendFetch(to=2, epoch=1, end=OffsetAndEpoch(100, 1), serial=1))

    assert (story.wrong == []) == right


def vote(epoch: int, *, granted: bool = True) -> VoteAnswer:
    return VoteAnswer(error=ErrorCode.NONE, leader=None, epoch=epoch, granted=granted)


@pytest.mark.parametrize(
    ("known", "durable", "answer", "wrong"),
    [
        (Election(5, voted=2), Election(5, voted=2), vote(5), ""),
        (Election(5, voted=2), Election(4), vote(5), "epoch 4 is on the disk"),
        (Election(5, voted=2), Election(5), vote(5), "a vote for None is on the disk"),
        (Election(5, voted=2), Election(5), vote(5, granted=False), ""),
    ],
)
def test_a_vote_is_on_the_disk_before_it_is_given(
    known: Election, durable: Election, answer: VoteAnswer, wrong: str
) -> None:
    story = Story()
    story.elections["n1"], story.on_disk["n1"] = known, durable

    story.say("n1", answer)

    assert (story.wrong == []) == (wrong == "")
    assert wrong in "".join(story.wrong)


def append(value: str, outcome: Any, offset: int = -1, *, at: int = 0, until: int = 1) -> Operation:
    return Operation("c1", "append", at, until, outcome, {"key": "k", "value": value, "offset": offset})


@pytest.mark.parametrize(
    ("operations", "wrong"),
    [
        ([append("a", "ok", 0), append("b", "ok", 1)], ""),
        ([append("a", "info"), append("b", "info"), append("x", "info"), append("y", "fail")], ""),
        ([append("a", "ok", 1), append("b", "info")], "acknowledged at 1, but is committed at [0]"),
        ([append("a", "info"), append("b", "info"), append("x", "ok", 2)], "committed at []"),
        ([append("a", "fail"), append("b", "info")], "the append of a failed"),
        ([append("a", "info")], "nobody sent b"),
        (
            [append("b", "ok", 1, at=0, until=1), append("a", "ok", 0, at=2, until=3)],
            "append at 0 began after 1 was acknowledged",
        ),
    ],
)
def test_acknowledged_appends_are_committed_where_they_were_acknowledged(
    operations: list[Operation], wrong: str
) -> None:
    story = Story().say("n1", applied(0, A, B))

    story.checker.check_operations(operations)

    assert (story.wrong == []) == (wrong == "")
    assert wrong in "".join(story.wrong)


def test_a_value_is_committed_once() -> None:
    story = Story().say("n1", applied(0, A, A))

    story.checker.check_operations([append("a", "info")])

    assert story.wrong == ["value a is committed at [0, 1]"]
