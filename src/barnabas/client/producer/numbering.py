"""Sequence numbers of one partition's batches: every record is written once and in order. Pure.

A broker accepts a batch only if its sequence follows the last one, and recognizes the last five batches of a
producer as duplicates. So a batch keeps its numbers on every retry, and a batch without a response is sent
again before any later batch. The rules are those of Java's TransactionManager with one exception: Java gives
new numbers even to a batch that may have been written, which can write it twice. Here such a batch fails.

A batch is *tracked* from when it gets its numbers until its outcome is known. It is *parked* when the broker
rejects it as out of order although no earlier batch is open. Then either it was written before (a restarted
broker recognizes only the last batch) or an earlier batch is missing. Later batches decide: if one of them is
acknowledged, everything before it is in the log. If all are rejected, the producer id can no longer be used:
batches that were certainly not written get a new one.
"""

from typing import NamedTuple

from barnabas.client.producer.batch import Batch
from barnabas.client.producer.stamp import Identity


class Settled(NamedTuple):
    """The outcome of the tracked batches: some failed, the others are sent again in this order."""

    failed: list[Batch]
    again: list[Batch]


class Numbering:
    """The batches of one partition that have numbers and no outcome yet."""

    __slots__ = (
        "_acked_next",
        "_acked_send_order",
        "_identity",
        "_is_known",
        "_is_spent",
        "_may_have_gap",
        "_next",
        "_restarting",
        "tracked",
    )

    def __init__(self) -> None:
        # In the order of their numbers.
        self.tracked: list[Batch] = []
        self._identity: Identity | None = None
        self._next = 0
        # The broker has acknowledged a batch of this identity, so it knows of it.
        self._is_known = False
        # The sequence that the broker expects after the last acknowledged batch.
        self._acked_next = 0
        self._acked_send_order: tuple[int, ...] = ()
        # A numbered batch failed: its sequences may be missing in the log.
        self._may_have_gap = False
        # No new batch may use this producer id.
        self._is_spent = False
        # The topic was recreated.
        self._restarting = False

    # Which batches may be sent

    def may_begin(self, current: Identity) -> bool:
        """Whether a batch may get its first numbers now."""
        if not self.tracked:
            assert not self._may_have_gap, "settle() was not called"
            return not self.needs_identity(current)
        # A broker accepts any first sequence of an unknown producer. If the first batch were lost, the second
        # would be accepted in its place and the first after it: so the first batch is sent alone.
        if not self._is_known:
            return False
        if self._is_spent or self._may_have_gap or self._restarting or current != self._identity:
            return False
        return not any(batch.parked for batch in self.tracked)

    def needs_identity(self, current: Identity) -> bool:
        return self._is_spent and current == self._identity

    def may_repeat(self, batch: Batch) -> bool:
        """Whether a numbered batch may be sent again: one at a time, in order."""
        return self._first_open() is batch and not self._restarting

    def begin(self, batch: Batch, current: Identity) -> None:
        assert self.may_begin(current), "begin() without may_begin()"
        if current != self._identity:
            self._identity, self._next, self._acked_next = current, 0, 0
            self._is_spent = self._is_known = False
        batch.number(current, self._next)
        self._next = batch.next_sequence
        self.tracked.append(batch)

    def _first_open(self) -> Batch | None:
        return next((batch for batch in self.tracked if not batch.parked), None)

    # Outcomes

    def acknowledged(self, batch: Batch) -> list[Batch]:
        """Note that a batch is in the log. Return parked batches that this proves to be in the log, too."""
        at = self.tracked.index(batch)
        proved = [each for each in self.tracked[:at] if each.parked and each.maybe_written]
        self.tracked = [each for each in self.tracked if each is not batch and each not in proved]
        self._is_known = True
        if batch.send_order > self._acked_send_order:
            self._acked_send_order = batch.send_order
            self._acked_next = batch.next_sequence
        return proved

    def refused_order(self, batch: Batch) -> bool:
        """Handle OUT_OF_ORDER. Return True if the batch is parked, False if it must be sent again."""
        if self._first_open() is not batch:
            return False
        batch.parked = True
        return True

    def dropped(self, batch: Batch) -> None:
        """Stop tracking a batch that failed."""
        self.tracked.remove(batch)
        self._may_have_gap = True

    def split(self, batch: Batch, parts: list[Batch]) -> None:
        """Give the numbers of a batch to its parts."""
        assert batch.identity is not None, "a split batch has numbers"
        sequence = batch.sequence
        for part in parts:
            part.number(batch.identity, sequence)
            sequence = part.next_sequence
        at = self.tracked.index(batch)
        self.tracked[at : at + 1] = parts

    def restart(self) -> None:
        """The topic was recreated and has no records of this producer."""
        self._restarting = True

    def settle(self) -> Settled | None:
        """Called after every outcome: decide whether the numbers continue or start again."""
        if self._restarting:
            return self._restarted()
        if not self.tracked:
            # Nothing is missing if the last numbered batch was acknowledged; otherwise the id is spent.
            self._is_spent = self._is_spent or (self._may_have_gap and self._next != self._acked_next)
            self._may_have_gap = False
            return None
        if not all(batch.parked for batch in self.tracked):
            return None
        failed = [batch for batch in self.tracked if batch.maybe_written]
        again = [batch for batch in self.tracked if not batch.maybe_written]
        self._forget(again)
        self._is_spent = True
        return Settled(failed, again)

    def _restarted(self) -> Settled | None:
        if any(batch.in_flight for batch in self.tracked):
            return None
        # Includes batches that may have been written: the log they were written to is gone.
        again = self.tracked
        self._forget(again)
        self._identity, self._is_spent, self._restarting = None, False, False
        return Settled([], again)

    def _forget(self, again: list[Batch]) -> None:
        self.tracked, self._may_have_gap = [], False
        for batch in again:
            batch.strip_number()
