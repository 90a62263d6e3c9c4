"""Producers of both versions of transactions do anything at any time, and after every step the log tells all.

Answers are lost and asked for again, what was sent comes late, transactions time out, ids are forgotten,
markers come twice, late or to a part of the partitions, writes fail, the coordinator is killed and loaded. A
failure is printed as the shortest story that hypothesis finds, with the line that replays it.
"""

import os
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.coordinators.txn.state import PREPARED, TxnState
from barnabas.coordinators.txn.table import TxnSettings
from barnabas.protocol.error_codes import ErrorCode
from support.scale import is_soak, scaled
from support.txn.model import codes
from support.txn.model_clients import NEW_ADD, NEW_END, Producer
from support.txn.model_scene import IDS, TxnScene

pytestmark = pytest.mark.kernel

EXAMPLES = 300
SOAK_EXAMPLES_FACTOR = 20
STEPS = 50
EXPIRATION_MS = 300_000

PICK = st.integers(0, 99)
HEARS = st.sampled_from([True, True, True, False])
LOGS = st.sets(st.integers(0, 2), min_size=1)
PARTS = st.sampled_from([(0, 1, 2), (0,), (1, 2), ()])


class Transactions(RuleBasedStateMachine, TxnScene):
    """Two transactional ids, their producers one after another and at once, and three partitions."""

    @initialize(
        level=st.sampled_from([2, 2, 2, 1, 0]),
        two_phase=st.booleans(),
        epoch=st.sampled_from([0, 0, 32_763]),
        population=st.lists(st.tuples(st.sampled_from(IDS), st.booleans(), st.booleans()), max_size=3),
    )
    def begin(
        self, level: int, two_phase: bool, epoch: int, population: list[tuple[str, bool, bool]]
    ) -> None:
        self.level = level
        self.has_two_phase = two_phase and level == 2
        self.open(
            TxnSettings(
                transaction_version=level,
                two_phase_commit=self.has_two_phase,
                id_expiration_ms=EXPIRATION_MS,
                expiration_interval_ms=60_000,
            )
        )
        for transactional_id in IDS if epoch else ():
            self.world.init(transactional_id)
            txn = self.world.txn(transactional_id)
            self.world.given(txn._replace(producer_epoch=epoch), transactional_id)
        for transactional_id, is_new, has_two_phase in population:
            self.a_producer_comes(transactional_id, is_new, has_two_phase, hears=True)

    # Producers

    @rule(transactional_id=st.sampled_from(IDS), is_new=st.booleans(), two_phase=st.booleans(), hears=HEARS)
    def a_producer_comes(self, transactional_id: str, is_new: bool, two_phase: bool, hears: bool) -> None:
        """Whoever had the id before may not have noticed yet."""
        producer = Producer(
            self.world,
            transactional_id,
            is_new=is_new and self.level == 2,
            two_phase=two_phase and is_new and self.has_two_phase,
        )
        self.producers = [*self.producers, producer][-4:]
        producer.begin(hears=hears)
        self.note(producer)

    @precondition(lambda self: self.producers)
    @rule(number=PICK, times=st.integers(1, 4), logs=LOGS, commit=st.booleans(), hears=HEARS)
    def one_goes_on(self, number: int, times: int, **how: Any) -> None:
        """As it should: it writes, ends, asks again, and begins anew when it is told that it is out."""
        for _ in range(times):
            self.go_on(self.pick(number), **how)

    @precondition(lambda self: self.producers)
    @rule(rounds=st.integers(1, 3), logs=LOGS, commit=st.booleans(), hears=HEARS)
    def all_go_on(self, rounds: int, **how: Any) -> None:
        for _ in range(rounds):
            for producer in self.producers:
                self.go_on(producer, **how)
            self.write_markers()

    @precondition(lambda self: self.producers)
    @rule(number=PICK, says_who=st.booleans(), hears=HEARS)
    def one_asks_for_its_epoch(self, number: int, says_who: bool, hears: bool) -> None:
        producer = self.pick(number)
        producer.is_out = False
        producer.begin(says_who=says_who, hears=hears)
        self.note(producer)

    @precondition(lambda self: self.producers)
    @rule(number=PICK, logs=LOGS, hears=HEARS)
    def one_writes(self, number: int, logs: set[int], hears: bool) -> None:
        producer = self.pick(number)
        for index in sorted(logs):
            if not producer.is_out:
                producer.write(self.logs[index], hears=hears)
        self.note(producer)

    @precondition(lambda self: self.producers)
    @rule(number=PICK, commit=st.booleans(), hears=HEARS)
    def one_ends(self, number: int, commit: bool, hears: bool) -> None:
        producer = self.pick(number)
        if not producer.is_out:
            producer.end(commit=commit, hears=hears)
        self.note(producer)

    @precondition(lambda self: self.producers)
    @rule(number=PICK, commit=st.booleans(), log=st.integers(0, 2))
    def one_does_all_at_once(self, number: int, commit: bool, log: int) -> None:
        """And its coordinator writes once for it."""
        producer = self.pick(number)
        if producer.is_out or producer.deed is None:
            return
        with self.world.one_turn():
            producer.write(self.logs[log], hears=True)
            producer.end(commit=commit, hears=True)
        self.note(producer)

    @precondition(lambda self: self.has_two_phase and self.producers)
    @rule(number=PICK, commit=st.booleans(), hears=HEARS)
    def one_restarts_and_completes_what_it_had_prepared(self, number: int, commit: bool, hears: bool) -> None:
        """It has written down which transaction it was, and decides by that."""
        before = self.pick(number)
        if not before.is_new or before.is_out or before.ending is not None:
            return
        before.is_out = True
        after = Producer(self.world, before.id, is_new=True, two_phase=before.two_phase)
        self.producers.append(after)
        answer = after.begin(keep=True, hears=hears)
        self.note(after)
        if answer is None or answer.error_code != ErrorCode.NONE:
            return
        ongoing = answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch
        after.is_kept = ongoing != (-1, -1)
        if before.deed is not None and ongoing == before.deed.producer:
            after.deed = before.deed
            after.end(commit=commit, hears=hears)
        elif after.is_kept:
            # Of another one: it is not to be seen.
            after.deed = next((one for one in self.deeds if one.producer == ongoing), None)
            after.end(commit=False, hears=hears)
        self.note(after)

    @precondition(lambda self: self.producers)
    @rule(number=PICK, logs=LOGS, commit=st.booleans())
    def another_takes_its_id_and_it_does_not_notice(self, number: int, logs: set[int], commit: bool) -> None:
        before = self.pick(number)
        after = Producer(self.world, before.id, is_new=before.is_new, two_phase=False)
        self.producers.append(after)
        for _ in range(4):
            self.go_on(before, logs=logs, commit=commit, hears=True)
            if before.deed is not None:
                break
            self.write_markers()
        for _ in range(2):
            after.begin()
            self.write_markers()
        self.note(after)
        self.go_on(after, logs=logs, commit=commit, hears=True)
        before.end(commit=commit, hears=True)
        self.note(before)

    # What comes late

    @precondition(lambda self: self.sent)
    @rule(number=PICK, other=st.booleans(), log=st.integers(0, 2))
    def an_end_comes_late(self, number: int, other: bool, log: int) -> None:
        """Of clients with an epoch for each transaction: it ends nothing but what it was sent for."""
        latest = -1 - number % min(3, len(self.sent))
        transactional_id, pair, commit = self.sent[latest if number < 70 else number % len(self.sent)]
        # Most of all it must not end what has begun after it.
        for producer in self.producers:
            if producer.id == transactional_id and not producer.is_out:
                producer.write(self.logs[log], hears=True)
                self.note(producer)
        txn = self.world.shard.table.txns.get(transactional_id)
        if txn is None or pair == txn.owner:
            return
        before = txn
        self.world.end(pair, commit=commit != other, version=NEW_END, transactional_id=transactional_id)
        after = self.world.shard.table.txns[transactional_id]
        # Of what was told twice nothing is written; a new id may be given to one that timed out.
        assert after.state is before.state
        assert after == before or before.state is TxnState.COMPLETE_ABORT

    @precondition(lambda self: self.sent)
    @rule(number=PICK, log=st.integers(0, 2))
    def a_partition_is_added_late(self, number: int, log: int) -> None:
        transactional_id, pair, _ = self.sent[number % len(self.sent)]
        txn = self.world.shard.table.txns.get(transactional_id)
        if txn is None or pair == txn.owner:
            return
        answer = self.world.add(pair, self.logs[log].tp, transactional_id=transactional_id, version=NEW_ADD)
        assert codes(answer) != [ErrorCode.NONE]

    # Markers

    @precondition(lambda self: self.asked)
    @rule(number=PICK, parts=PARTS, is_told=HEARS, twice=st.booleans())
    def markers_are_written(self, number: int, parts: tuple[int, ...], is_told: bool, twice: bool) -> None:
        """To some of the partitions; maybe the coordinator does not hear of it."""
        # One of the last two, or any.
        ended = self.asked[-1 - number % min(2, len(self.asked)) if number < 60 else number % len(self.asked)]
        if ended.transaction_version < 2 and not self.is_wanted(ended):
            return
        done = []
        for _ in range(2 if twice else 1):
            for index in parts:
                log = self.logs[index]
                if log.tp in ended.partitions and log.mark(ended):
                    done.append(log.tp)
        if is_told:
            self.world.marked(ended, done)

    @precondition(lambda self: self.asked)
    @rule(number=PICK)
    def it_is_told_late_that_markers_are_written(self, number: int) -> None:
        """Of a transaction that is complete, or in another life of the coordinator."""
        ended = self.asked[-1 - number % min(5, len(self.asked))]
        marking = self.world.shard.table.pending_markers.get(ended.transactional_id)
        if marking is None or marking.ended is not ended:
            written = len(self.world.log)
            self.world.marked(ended)
            assert len(self.world.log) == written

    @rule()
    def all_markers_are_written(self) -> None:
        # The first may fail, and the coordinator be loaded.
        for _ in range(2):
            self.write_markers()
        assert not [txn for txn in self.world.shard.table.txns.values() if txn.state in PREPARED]

    # Time and trouble

    @rule(ms=st.sampled_from([100, 100, 5_000, 5_000, 35_000, EXPIRATION_MS + 60_000]))
    def time_passes(self, ms: int) -> None:
        self.world.pass_time(ms)

    @rule(how=st.sampled_from(["is killed", "cannot write"]))
    def the_coordinator_has_trouble(self, how: str) -> None:
        if how == "cannot write":
            self.world.refuses = True
        else:
            self.world.crash()

    @invariant()
    def all_is_sound(self) -> None:
        if not hasattr(self, "world"):
            return
        self.remember_asked()
        again = self.world.replayed(self.world.log)
        assert again.durable() == self.world.shard.durable()
        for deed in self.deeds:
            deed.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.settle()


# The same stories every time, so that a change is judged by what it changed. BARNABAS_FUZZ=N tells N others.
Transactions.TestCase.settings = hypothesis_settings(
    max_examples=scaled("BARNABAS_FUZZ", EXAMPLES, EXAMPLES * SOAK_EXAMPLES_FACTOR),
    stateful_step_count=STEPS,
    deadline=None,
    derandomize=not is_soak() and "BARNABAS_FUZZ" not in os.environ,
)
TestTransactions: Any = Transactions.TestCase
