"""Random histories of producers, compared with a second implementation of the rules in plain dictionaries."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.records.header import TRANSACTIONAL_BIT
from barnabas.storage.intake import Batch
from barnabas.storage.producers.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    ProducerRefused,
    TransactionCoordinatorFenced,
)
from barnabas.storage.producers.snapshot import read_snapshot, write_snapshot
from barnabas.storage.producers.table import Duplicate, Origin, Producers
from barnabas.storage.segment.txn_index import AbortedTxn, aborted_in
from support.log.producer_logs import fields_of, header

pytestmark = pytest.mark.kernel

SEQUENCES = 2**31
PRODUCERS = (1, 17, 3000)


def is_transactional(batch: Batch) -> bool:
    return batch.attributes & TRANSACTIONAL_BIT != 0


@dataclass
class Known:
    """A producer of the model. A batch is (first sequence, last sequence, base offset, last offset, time)."""

    epoch: int = -1
    coordinator_epoch: int = -1
    timestamp: int = -1
    batches: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    open_since: int | None = None

    def move_to(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch, self.batches = epoch, []


@dataclass
class Model:
    """The rules of Kafka's brokers."""

    known: dict[int, Known] = field(default_factory=dict)
    completed: list[tuple[int, int]] = field(default_factory=list)
    end: int = 0

    def check(self, batch: Any, origin: Origin) -> Any:
        who = self.known.get(batch.producer_id, Known())
        last = (batch.base_sequence + batch.count - 1) % SEQUENCES
        if origin is Origin.CLIENT and batch.producer_epoch == who.epoch:
            for one in who.batches[-5:]:
                if one[:2] == (batch.base_sequence, last):
                    return Duplicate(*one[2:])
        if origin is not Origin.REPLICATION and batch.producer_epoch < who.epoch:
            return InvalidProducerEpoch
        if origin is Origin.CLIENT and who.epoch != -1:
            expected = 0
            if batch.producer_epoch == who.epoch and who.batches:
                expected = (who.batches[-1][1] + 1) % SEQUENCES
            if batch.base_sequence != expected:
                return OutOfOrderSequence
        if who.open_since is not None and not is_transactional(batch):
            return InvalidTxnState
        return None

    def append(self, batch: Any, timestamp: int) -> None:
        base, self.end = self.end, self.end + batch.count
        who = self.known.setdefault(batch.producer_id, Known())
        who.move_to(batch.producer_epoch)
        last = (batch.base_sequence + batch.count - 1) % SEQUENCES
        who.batches.append((batch.base_sequence, last, base, self.end - 1, timestamp))
        who.timestamp = timestamp
        if is_transactional(batch) and who.open_since is None:
            who.open_since = base

    def check_marker(
        self, producer_id: int, epoch: int, coordinator: int, origin: Origin, version: int
    ) -> Any:
        who = self.known.get(producer_id, Known())
        if origin is Origin.REPLICATION:
            return None
        if epoch < who.epoch or (version == 2 and epoch == who.epoch and who.open_since is not None):
            return InvalidProducerEpoch
        return TransactionCoordinatorFenced if coordinator < who.coordinator_epoch else None

    def end_transaction(self, producer_id: int, epoch: int, coordinator: int, timestamp: int) -> int | None:
        who = self.known.setdefault(producer_id, Known())
        who.move_to(epoch)
        who.coordinator_epoch, who.timestamp = coordinator, timestamp
        offset, self.end = self.end, self.end + 1
        begun, who.open_since = who.open_since, None
        if begun is None:
            return None
        self.completed.append((begun, offset))
        return begun

    def open_since(self) -> list[int]:
        return sorted(who.open_since for who in self.known.values() if who.open_since is not None)

    def first_unstable(self) -> int | None:
        return min([*self.open_since(), *(begun for begun, _ in self.completed)], default=None)

    def described(self) -> list[tuple[int, ...]]:
        nothing = (-1, -1, 0, -1)
        told: list[tuple[int, ...]] = []
        for producer_id, who in self.known.items():
            _, sequence, base, last = (who.batches[-1] if who.batches else nothing)[:4]
            delta = last - base if who.batches else 0
            since = -1 if who.open_since is None else who.open_since
            told.append(
                (producer_id, who.epoch, sequence, last, delta, who.timestamp, who.coordinator_epoch, since)
            )
        return told

    def forget_older_batches(self) -> None:
        """Forget what a snapshot omits. The last batch gets the timestamp of a later marker, if any."""
        for who in self.known.values():
            who.batches = [(*batch[:4], who.timestamp) for batch in who.batches[-1:]]
        self.completed = []

    def expire(self, before: int) -> None:
        self.known = {
            key: who
            for key, who in self.known.items()
            if who.open_since is not None or who.timestamp > before
        }


class History:
    """Pass every event to the model and to the real implementation."""

    def __init__(self) -> None:
        self.model = Model()
        self.real = Producers()
        self.aborted: list[AbortedTxn] = []
        self.now = 1000

    def data(
        self, producer_id: int, epoch_step: int, sequence: tuple[str, int], rest: tuple[Any, ...]
    ) -> None:
        count, transactional, origin = rest
        who = self.model.known.get(producer_id, Known())
        epoch = max(0, who.epoch + epoch_step)
        start, length = self._sequence(who, *sequence)
        batch = header(
            producer_id,
            epoch=epoch,
            sequence=start,
            count=length or count,
            transactional=transactional,
        )
        expected = self.model.check(batch, origin)
        assert self._asked(lambda: self.real.check(batch, origin)) == expected
        if expected is None:
            self.now += 1
            batch.max_timestamp = self.now
            self.real.appended(batch, self.model.end)
            self.model.append(batch, self.now)

    def _sequence(self, who: Known, how: str, number: int) -> tuple[int, int]:
        """A first sequence, and a count if `how` determines it, otherwise 0."""
        if how == "again" and len(who.batches) >= number:
            first, _, base, last, _ = who.batches[-number]
            return first, last - base + 1
        following = (who.batches[-1][1] + 1) % SEQUENCES if who.batches else 0
        skipped = {"next": 0, "again": 0, "gap": number}.get(how)
        if skipped is not None:
            return (following + skipped) % SEQUENCES, 0
        return (0 if how == "zero" else SEQUENCES - number), 0

    def marker(self, producer_id: int, epoch_step: int, coordinator: int, rest: tuple[Any, ...]) -> None:
        aborted, origin, version = rest
        epoch = max(0, self.model.known.get(producer_id, Known()).epoch + epoch_step)
        expected = self.model.check_marker(producer_id, epoch, coordinator, origin, version)
        asked = self._asked(lambda: self.real.check_marker(producer_id, epoch, coordinator, origin, version))
        assert asked == expected
        if expected is not None:
            return
        self.now += 1
        completed = self.real.marker_appended(
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=coordinator,
            aborted=aborted,
            offset=self.model.end,
            timestamp=self.now,
        )
        offset = self.model.end
        begun = self.model.end_transaction(producer_id, epoch, coordinator, self.now)
        assert fields_of(completed) == (None if begun is None else (producer_id, begun, offset, aborted))
        if completed is not None:
            stable = self.real.last_stable_after(completed)
            assert stable == min(self.model.open_since(), default=completed.last_offset + 1)
            if aborted:
                self.aborted.append(AbortedTxn(producer_id, completed.first_offset, offset, stable))

    def plain(self, count: int) -> None:
        self.real.appended(header(-1, epoch=-1, sequence=-1, count=count), self.model.end)
        self.model.end += count

    def high_watermark(self, behind: int) -> None:
        to = self.model.end - behind
        self.real.high_watermark_moved(to)
        self.model.completed = [one for one in self.model.completed if one[1] >= to]

    def expire(self, after: int) -> None:
        known = len(self.model.known)
        self.model.expire(self.now - after)
        assert self.real.expire(self.now, after_ms=after) == known - len(self.model.known)

    def reload(self) -> None:
        self.real = read_snapshot(write_snapshot(self.real), "snapshot", self.model.end)
        self.model.forget_older_batches()
        # The producers now have the order of the file.
        order = [entry.producer_id for entry in self.real.entries()]
        self.model.known = {key: self.model.known[key] for key in order}

    @staticmethod
    def _asked(question: Any) -> Any:
        try:
            return question()
        except ProducerRefused as refused:
            return type(refused)

    def compare(self) -> None:
        assert self.real.end_offset == self.model.end
        assert self.real.entries() == self.model.described()
        assert self.real.first_open_offset() == self.model.first_unstable()
        open_since = sorted(one.txn_first_offset for one in self.real.entries() if one.txn_first_offset >= 0)
        assert open_since == self.model.open_since()
        assert self.real.is_empty == (not self.model.known and not self.model.completed)


PRODUCER = st.sampled_from(PRODUCERS)
EPOCH_STEP = st.sampled_from([0, 0, 0, 1, -1, -1, 2])
ORIGIN = st.sampled_from(
    [Origin.CLIENT, Origin.CLIENT, Origin.CLIENT, Origin.COORDINATOR, Origin.REPLICATION]
)
SEQUENCE = st.one_of(
    st.just(("next", 0)),
    st.just(("next", 0)),
    st.tuples(st.just("again"), st.integers(1, 7)),
    st.tuples(st.sampled_from(["gap", "wrap"]), st.integers(1, 4)),
    st.just(("zero", 0)),
)
STEP = st.one_of(
    st.tuples(
        st.just("data"), PRODUCER, EPOCH_STEP, SEQUENCE, st.tuples(st.integers(1, 4), st.booleans(), ORIGIN)
    ),
    st.tuples(
        st.just("data"),
        PRODUCER,
        st.just(0),
        st.just(("next", 0)),
        st.tuples(st.integers(1, 4), st.booleans(), st.just(Origin.CLIENT)),
    ),
    st.tuples(
        st.just("marker"),
        PRODUCER,
        EPOCH_STEP,
        st.integers(0, 2),
        st.tuples(st.booleans(), ORIGIN, st.sampled_from([0, 1, 2])),
    ),
    st.tuples(st.just("plain"), st.integers(1, 3)),
    st.tuples(st.just("high_watermark"), st.integers(0, 6)),
    st.tuples(st.just("expire"), st.integers(1, 30)),
    st.tuples(st.just("reload")),
)


@settings(max_examples=400)
@given(st.lists(STEP, max_size=60))
def test_producer_state_and_model_agree_on_every_event(steps: list[tuple[Any, ...]]) -> None:
    history = History()

    for name, *arguments in steps:
        getattr(history, name)(*arguments)
        history.compare()


def kafkas_search(entries: list[AbortedTxn], start: int, upto: int) -> tuple[list[AbortedTxn], bool]:
    found = []
    for txn in entries:
        if txn.last_offset >= start and txn.first_offset < upto:
            found.append(txn)
        if txn.last_stable_offset >= upto:
            return found, True
    return found, False


@given(st.lists(STEP, max_size=60), st.integers(0, 40), st.integers(1, 40))
def test_the_aborted_transactions_of_a_range_equal_kafkas(
    steps: list[tuple[Any, ...]], start: int, length: int
) -> None:
    history = History()
    for name, *arguments in steps:
        getattr(history, name)(*arguments)

    assert aborted_in(history.aborted, start, start + length) == kafkas_search(
        history.aborted, start, start + length
    )
