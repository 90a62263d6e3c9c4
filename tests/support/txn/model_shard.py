"""A shard of transactional ids with its log in memory: what the shell does, without a loop.

Whatever the core decides is written as batches, read by a follower that knows nothing but the log, and
applied. Several requests may share a turn, and then a write. The process may be killed and a write may fail:
then the shard is loaded from what is in the log. What producers ask of it is in txn_model.py.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.decision.outcome import Now, Outcome, Record, ReplyTo
from barnabas.coordinators.runtime.writing import NextBatch, batches
from barnabas.coordinators.txn.answers import NEEDS_PRODUCER_ID
from barnabas.coordinators.txn.record import TxnRecord
from barnabas.coordinators.txn.shard import TxnShard
from barnabas.coordinators.txn.state import Txn
from barnabas.coordinators.txn.table import MarkersToWrite, TxnSettings, TxnTable
from barnabas.records.header import Codec

START_MS = 1_700_000_000_000
BATCH_BYTES_MAX = 1 << 20
FIRST_ID = 4_000


class Desk(ReplyTo):
    """Who writes markers: what was asked of it, in this life of the shard."""

    __slots__ = ("asked",)

    def __init__(self) -> None:
        self.asked: list[MarkersToWrite] = []


class Asked(ReplyTo):
    """A request. Without an answer its coordinator has gone."""

    __slots__ = ("answer",)

    def __init__(self) -> None:
        self.answer: Any = None


class HostedShard:
    """One shard, its log, and the time."""

    def __init__(
        self, settings: TxnSettings | None = None, *, batch_bytes_max: int = BATCH_BYTES_MAX
    ) -> None:
        self.settings = TxnSettings() if settings is None else settings
        self._batch_bytes_max = batch_bytes_max
        self.tick_ms = 0
        self.log: list[bytes] = []
        self.epoch = 0
        # The next write fails.
        self.refuses = False
        self._ids = FIRST_ID
        self._turn: list[Outcome] | None = None
        self._load()

    @property
    def now(self) -> Now:
        return Now(START_MS + self.tick_ms, self.tick_ms)

    def txn(self, transactional_id: str = "t") -> Txn:
        return self.shard.table.txns[transactional_id]

    # What comes of a request or of a timer

    @contextmanager
    def one_turn(self) -> Iterator[None]:
        """What is decided in it is applied at once, and written when it ends."""
        self._turn = []
        yield
        outcomes, self._turn = self._turn, None
        self._write_and_answer(outcomes)

    def do(self, act: Callable[[Now], Outcome]) -> Outcome:
        outcome = act(self.now)
        if self._turn is not None:
            for record in outcome.records:
                self.shard.apply(record)
            self._turn.append(outcome)
            return outcome
        if not self.refuses:
            for record in outcome.records:
                self.shard.apply(record)
        self._write_and_answer([outcome])
        return outcome

    def _write_and_answer(self, outcomes: list[Outcome]) -> None:
        records = [record for outcome in outcomes for record in outcome.records]
        if records:
            if self.refuses:
                self.refuses = False
                self._load()
                return
            self._write(records)
        for outcome in outcomes:
            for to, answer in outcome.answers:
                if isinstance(to, Desk):
                    assert isinstance(answer, MarkersToWrite)
                    to.asked.append(answer)
                else:
                    assert isinstance(to, Asked)
                    assert to.answer is None, "answered twice"
                    to.answer = answer

    def _write(self, records: list[Record]) -> None:
        written = batches(records, NextBatch(0, 0, self._batch_bytes_max, Codec.NONE), self.now.ms)
        self.log += written
        for batch in written:
            self._follower.replay(batch)
        assert self._follower.durable() == self.shard.durable(), "the log does not tell what has happened"
        assert self._follower.table.ongoing.keys() == self.shard.table.ongoing.keys()

    def ask(self, act: Callable[[ReplyTo, Now], Outcome]) -> Any:
        """The answer; None if the coordinator has gone, or in one_turn()."""
        return self.ask_later(act).answer

    def ask_later(self, act: Callable[[ReplyTo, Now], Outcome]) -> Asked:
        asked = Asked()
        self.do(lambda now: act(asked, now))
        return asked

    def ask_with_id(self, act: Callable[[int | None, ReplyTo, Now], Outcome]) -> Asked:
        """As handlers do it: a new producer id is there only for those who need it."""
        before = self.shard.durable()
        asked = Asked()
        if self.do(lambda now: act(None, asked, now)) is not NEEDS_PRODUCER_ID:
            return asked
        assert self.shard.durable() == before, "changed before it had what it needs"
        self._ids += 1
        new_id = self._ids
        return self.ask_later(lambda to, now: act(new_id, to, now))

    @property
    def ids_given(self) -> int:
        return self._ids - FIRST_ID

    def given(self, txn: Txn, transactional_id: str = "t") -> None:
        """The id is in this state: so it has been written."""
        outcome = Outcome()
        outcome.write(TxnRecord(transactional_id, txn))
        self.do(lambda _: outcome)

    # Markers and time

    def marked(self, ended: MarkersToWrite, partitions: Iterable[TopicPartition] | None = None) -> None:
        """The partitions have their markers; all of them, if it is not said which."""
        told = ended.partitions if partitions is None else list(partitions)
        shard = self.shard
        self.do(lambda now: shard.table.markers_written(ended, told, now))

    def mark_all(self) -> None:
        for ended in list(self.desk.asked):
            self.marked(ended)

    def pass_time(self, ms: int) -> None:
        """Whatever is due on the way happens at its time."""
        until_ms = self.tick_ms + ms
        while (next_ms := self.shard.timers.next_ms()) is not None and next_ms <= until_ms:
            self.tick_ms = max(self.tick_ms, next_ms)
            shard = self.shard
            for key in shard.timers.due(self.tick_ms):
                if self.shard is shard:
                    self.do(partial(shard.expire, key))
        self.tick_ms = until_ms

    # How a shard ends

    def takes_settings(self, settings: TxnSettings) -> None:
        self.settings = self.shard.table.settings = settings

    def crash(self) -> None:
        self.refuses = False
        self._load()

    def _load(self) -> None:
        self._turn = None
        self.epoch += 1
        self.desk = Desk()
        self.shard = self.replayed(self.log)
        self._follower = self.replayed(self.log)
        self.do(self.shard.loaded)
        prepared = {one for one, txn in self.shard.table.txns.items() if txn.is_prepared}
        assert {ended.transactional_id for ended in self.desk.asked} == prepared, (
            "markers not asked for again"
        )

    def replayed(self, log: Iterable[bytes]) -> TxnShard:
        """A shard that has read this log and knows nothing else."""
        shard = TxnShard(TxnTable(self.settings, self.desk, self.epoch, lambda: self._batch_bytes_max))
        for batch in log:
            shard.replay(batch)
        return shard
