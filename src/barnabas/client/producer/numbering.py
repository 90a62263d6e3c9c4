"""The sequences of one partition's batches: each record once and in order, whatever happens on the way. Pure.

A broker takes a batch of a producer only if it goes on where the last one ended, and knows its last five
again. So a batch keeps its numbers however often it is sent, and one that was not answered is sent again with
its own before anything else is. The rules are those of Java's TransactionManager but for one: Java gives new
numbers also to what may have been written already, which can write it twice. Here that fails, and says why.

A batch is *tracked* from when it gets its numbers until it is known what became of it. It is *parked* when
the broker calls it out of order though nothing before it is open. Then either it was written before (a broker
that was restarted knows only the last batch again) or something before it is missing. What was sent after it
decides: if one of those is acknowledged, everything before it is in the log. If all of them are refused too,
this identity is at its end: what was certainly not written goes under a new one.
"""

from typing import NamedTuple

from barnabas.client.producer.batch import Batch
from barnabas.client.producer.stamp import Identity


class Settled(NamedTuple):
    """What becomes of the batches that were tracked: some failed, the others go again, in this order."""

    failed: list[Batch]
    again: list[Batch]


class Numbering:
    """The batches of one partition that have numbers and no end yet."""

    __slots__ = (
        "_acked_next",
        "_acked_place",
        "_doubtful",
        "_greeted",
        "_identity",
        "_next",
        "_restarting",
        "_spent",
        "tracked",
    )

    def __init__(self) -> None:
        # In the order of their numbers.
        self.tracked: list[Batch] = []
        self._identity: Identity | None = None
        self._next = 0
        # The broker has acknowledged a batch of this identity, so it knows of it.
        self._greeted = False
        # What the broker expects after the last batch that it acknowledged.
        self._acked_next = 0
        self._acked_place: tuple[int, ...] = ()
        # A numbered batch ended without being acknowledged: perhaps its numbers are missing in the log.
        self._doubtful = False
        # Nothing new goes under this identity.
        self._spent = False
        # The topic is another one of the same name.
        self._restarting = False

    # What may go

    def may_begin(self, current: Identity) -> bool:
        """Whether a batch may get its first numbers now."""
        if not self.tracked:
            assert not self._doubtful, "settle() was not called"
            return not self.needs_identity(current)
        # A broker that knows nothing of a producer takes any sequence from it. If the first batch got lost,
        # the second would be taken in its place and the first after it: so the first goes alone.
        if not self._greeted:
            return False
        if self._spent or self._doubtful or self._restarting or current != self._identity:
            return False
        return not any(batch.parked for batch in self.tracked)

    def needs_identity(self, current: Identity) -> bool:
        return self._spent and current == self._identity

    def may_repeat(self, batch: Batch) -> bool:
        """Whether a batch with numbers may go again: one at a time, in order."""
        return self._first_open() is batch and not self._restarting

    def begin(self, batch: Batch, current: Identity) -> None:
        assert self.may_begin(current), "numbers were given too early"
        if current != self._identity:
            self._identity, self._next, self._acked_next = current, 0, 0
            self._spent = self._greeted = False
        batch.number(current, self._next)
        self._next = batch.next_sequence
        self.tracked.append(batch)

    def _first_open(self) -> Batch | None:
        return next((batch for batch in self.tracked if not batch.parked), None)

    # What became of it

    def acknowledged(self, batch: Batch) -> list[Batch]:
        """It is in the log; so are the returned ones, of which that was not known."""
        at = self.tracked.index(batch)
        proved = [each for each in self.tracked[:at] if each.parked and each.maybe_written]
        self.tracked = [each for each in self.tracked if each is not batch and each not in proved]
        self._greeted = True
        if batch.place > self._acked_place:
            self._acked_place = batch.place
            self._acked_next = batch.next_sequence
        return proved

    def refused_order(self, batch: Batch) -> bool:
        """The broker misses something before it. True if it is parked, False if it is to be sent again."""
        if self._first_open() is not batch:
            return False
        batch.parked = True
        return True

    def dropped(self, batch: Batch) -> None:
        """It ended and was not acknowledged."""
        self.tracked.remove(batch)
        self._doubtful = True

    def split(self, batch: Batch, parts: list[Batch]) -> None:
        """The parts have the numbers of the whole."""
        assert batch.identity is not None, "it has no numbers"
        sequence = batch.sequence
        for part in parts:
            part.number(batch.identity, sequence)
            sequence = part.next_sequence
        at = self.tracked.index(batch)
        self.tracked[at : at + 1] = parts

    def restart(self) -> None:
        """The topic was created again, and nothing of this producer is in it."""
        self._restarting = True

    def settle(self) -> Settled | None:
        """Called whenever something became known: whether the numbers go on, or how they begin anew."""
        if self._restarting:
            return self._restarted()
        if not self.tracked:
            # What came after the doubtful one was acknowledged, so it is in the log as well; or it is not.
            self._spent = self._spent or (self._doubtful and self._next != self._acked_next)
            self._doubtful = False
            return None
        if not all(batch.parked for batch in self.tracked):
            return None
        failed = [batch for batch in self.tracked if batch.maybe_written]
        again = [batch for batch in self.tracked if not batch.maybe_written]
        self._forget(again)
        self._spent = True
        return Settled(failed, again)

    def _restarted(self) -> Settled | None:
        if any(batch.in_flight for batch in self.tracked):
            return None
        # Also what may have been written: where it was written to is no more.
        again = self.tracked
        self._forget(again)
        self._identity, self._spent, self._restarting = None, False, False
        return Settled([], again)

    def _forget(self, again: list[Batch]) -> None:
        self.tracked, self._doubtful = [], False
        for batch in again:
            batch.strip_number()
