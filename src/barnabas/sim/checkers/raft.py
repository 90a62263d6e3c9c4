"""The rules of the quorum. Valid under all faults but a disk that lies or is replaced by an older one.

Most rules are checked when a probe reports an event, because later the state is gone: what is durable at the
moment an answer leaves, what a leader's log has when it is elected. `ledger` is what is committed: the first
report of an offset decides, and all others must agree.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from barnabas.raft.effects import (
    BecameLeader,
    EpochAnswer,
    FetchAnswer,
    HighWatermarkAdvanced,
    LostLeadership,
    SendFetch,
    TruncateTo,
    VoteAnswer,
)
from barnabas.raft.facts import Election
from barnabas.raft.quorum_state import QUORUM_STATE, parse_quorum_state
from barnabas.sim.checkers import Violation
from barnabas.sim.history import Operation
from barnabas.sim.quorum.voter import Applied, Loaded

NAME: Final = "raft"
LOG: Final = "/data/__cluster_metadata-0"


class Entry(NamedTuple):
    """The committed record at one offset; a control record has no pair."""

    epoch: int
    pair: tuple[str, str] | None


class NodeView(NamedTuple):
    """The state of a running voter that the checker reads."""

    election: Callable[[], Election]
    end_offset: Callable[[], int]
    # The content of a file after the worst power loss.
    durable: Callable[[str], bytes | None]
    # The path and the current content of the segment that is appended to.
    active_segment: Callable[[], tuple[str, bytes]]


class RaftChecker:
    """Feed it all probes of the voters, then call check_operations() at the end."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.ledger: list[Entry] = []
        self.leaders: dict[int, str] = {}
        # Events that the run has reached, with their numbers.
        self.marks: dict[str, int] = {}
        # Of the running incarnation of each node: the next offset to apply, and its high watermark.
        self._next: dict[str, int] = {}
        self._high_watermark: dict[str, int] = {}
        # The first offset of the epoch that it leads.
        self._epoch_start: dict[str, int] = {}
        # Of all incarnations: everything below was applied.
        self._applied: dict[str, int] = {}

    def started(self, node: str) -> None:
        self._next[node] = 0
        self._high_watermark[node] = 0
        self._epoch_start.pop(node, None)

    def next_offset(self, node: str) -> int:
        """The offset that the running incarnation of a node applies next."""
        return self._next[node]

    def saw(self, now_ns: int, node: str, name: str, about: object, view: NodeView | None) -> None:
        """Check one probe."""
        self.marks[name] = self.marks.get(name, 0) + 1
        for text in self._wrong(node, about, view):
            self.violations.append(Violation(NAME, now_ns, node, text))

    def _wrong(self, node: str, about: Any, view: NodeView | None) -> list[str]:
        match about:
            case Applied():
                return self._applied_batch(node, about)
            case Loaded():
                return self._loaded_snapshot(node, about)
            case BecameLeader(epoch=epoch, start=start):
                self._epoch_start[node] = start
                return self._became_leader(node, epoch, view)
            case LostLeadership():
                self._epoch_start.pop(node, None)
            case SendFetch(end=end):
                return self._acknowledged(end.offset, view)
            case HighWatermarkAdvanced(offset):
                return self._advanced(node, offset, view)
            case TruncateTo(offset) if offset < self._applied.get(node, 0):
                return [f"truncates to {offset}, but has applied everything below {self._applied[node]}"]
            case VoteAnswer() | EpochAnswer() | FetchAnswer():
                return self._answered(about, view)
        return []

    def _applied_batch(self, node: str, batch: Applied) -> list[str]:
        found = []
        if batch.base_offset != self._next[node]:
            found.append(f"applies offset {batch.base_offset}, expected {self._next[node]}")
        self._next[node] = batch.last_offset + 1
        self._applied[node] = max(self._applied.get(node, 0), batch.last_offset + 1)
        pairs: list[tuple[str, str] | None] = list(batch.values) or [None] * (
            batch.last_offset - batch.base_offset + 1
        )
        for offset, pair in enumerate(pairs, batch.base_offset):
            entry = Entry(batch.epoch, pair)
            if offset < len(self.ledger):
                if self.ledger[offset] != entry:
                    found.append(
                        f"applies {entry} at offset {offset}, but {self.ledger[offset]} is committed"
                    )
            elif offset == len(self.ledger):
                self.ledger.append(entry)
            else:
                found.append(f"applies offset {offset}, but only {len(self.ledger)} offsets are committed")
        return found

    def _loaded_snapshot(self, node: str, loaded: Loaded) -> list[str]:
        offset, epoch = loaded.snapshot
        self._next[node] = offset
        self._applied[node] = max(self._applied.get(node, 0), offset)
        if offset > len(self.ledger):
            return [f"loads a snapshot of {offset}, but only {len(self.ledger)} offsets are committed"]
        if self.ledger[offset - 1].epoch != epoch:
            return [f"loads snapshot {loaded.snapshot}, but the last record has {self.ledger[offset - 1]}"]
        expected = self.state_at(offset)
        if dict(loaded.state) != expected:
            return [f"loads a snapshot of {offset} with {dict(loaded.state)}, expected {expected}"]
        return []

    def _became_leader(self, node: str, epoch: int, view: NodeView | None) -> list[str]:
        first = self.leaders.setdefault(epoch, node)
        found = [] if first == node else [f"leads in epoch {epoch}, but {first} was its leader"]
        if view is not None and view.end_offset() < len(self.ledger):
            found.append(f"leads with a log of {view.end_offset()}, but {len(self.ledger)} are committed")
        return found

    def _advanced(self, node: str, offset: int, view: NodeView | None) -> list[str]:
        before, self._high_watermark[node] = self._high_watermark[node], offset
        found = [] if offset >= before else [f"high watermark goes back from {before} to {offset}"]
        start = self._epoch_start.get(node)
        if start is not None and offset <= start:
            # Another leader could still truncate them. (Raft, 5.4.2)
            found.append(f"commits up to {offset}, but its epoch starts at {start}")
        if view is not None and offset > view.end_offset():
            found.append(f"high watermark {offset} is above the log end {view.end_offset()}")
        return found

    def _acknowledged(self, offset: int, view: NodeView | None) -> list[str]:
        """A fetch tells the leader that everything before its offset is synced."""
        if view is None or view.end_offset() != offset:
            return []
        path, content = view.active_segment()
        durable = view.durable(path) or b""
        if durable[: len(content)] != content:
            return [f"fetches from {offset}, but {path} is not on the disk as it is in memory"]
        return []

    def _answered(self, answer: VoteAnswer | EpochAnswer | FetchAnswer, view: NodeView | None) -> list[str]:
        if view is None:
            return []
        content = view.durable(f"{LOG}/{QUORUM_STATE}")
        durable = Election() if content is None else parse_quorum_state(content, QUORUM_STATE)
        if durable.epoch < answer.epoch:
            return [f"answers with epoch {answer.epoch}, but epoch {durable.epoch} is on the disk"]
        election = view.election()
        if isinstance(answer, VoteAnswer) and answer.granted and durable.voted != election.voted:
            return [f"has voted for {election.voted}, but a vote for {durable.voted} is on the disk"]
        return []

    def state_at(self, offset: int) -> dict[str, str]:
        """The state after the committed records below `offset`."""
        return dict(entry.pair for entry in self.ledger[:offset] if entry.pair is not None)

    def check_operations(self, operations: list[Operation]) -> None:
        """Compare the clients' appends with the ledger. Every value is unique and was sent once."""
        found: dict[str, list[int]] = {}
        for offset, entry in enumerate(self.ledger):
            if entry.pair is not None:
                found.setdefault(entry.pair[1], []).append(offset)
        acknowledged: list[tuple[int, int]] = []
        for operation in operations:
            value, at = operation.facts["value"], operation.completed_ns or operation.invoked_ns
            offsets = found.pop(value, [])
            wrong = None
            if len(offsets) > 1:
                wrong = f"value {value} is committed at {offsets}"
            elif operation.outcome == "fail" and offsets:
                wrong = f"the append of {value} failed, but it is committed at {offsets[0]}"
            elif operation.outcome == "ok":
                offset = operation.facts["offset"]
                acknowledged.append((at, offset))
                if offsets != [offset]:
                    wrong = f"value {value} was acknowledged at {offset}, but is committed at {offsets}"
            if wrong is not None:
                self.violations.append(Violation(NAME, at, operation.client, wrong))
        for value, offsets in found.items():
            self.violations.append(Violation(NAME, 0, "ledger", f"nobody sent {value}, at {offsets}"))
        self._check_order(operations, sorted(acknowledged))

    def _check_order(self, operations: list[Operation], acknowledged: list[tuple[int, int]]) -> None:
        """An append that began after another was acknowledged has a higher offset."""
        highest, next_one = -1, 0
        for operation in operations:
            while next_one < len(acknowledged) and acknowledged[next_one][0] < operation.invoked_ns:
                highest = max(highest, acknowledged[next_one][1])
                next_one += 1
            if operation.outcome == "ok" and operation.facts["offset"] <= highest:
                text = f"append at {operation.facts['offset']} began after {highest} was acknowledged"
                self.violations.append(Violation(NAME, operation.invoked_ns, operation.client, text))
