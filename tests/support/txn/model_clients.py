"""Producers with transactions, and the partitions that they write to, for the model of the coordinator.

A `Deed` is what one producer did in one transaction, as it knows it itself. Partitions say what became of it:
seen, or not. Whatever a producer was told, and whatever a partition says, must be the same for all of a deed.
"""

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.txn.table import MarkersToWrite
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import EndTxnResponse, InitProducerIdResponse
from support.txn.model import TxnWorld, codes

AGAIN = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNKNOWN_SERVER_ERROR})
NEW_ADD, OLD_ADD = 5, 3
NEW_END, OLD_END = 5, 3


class Deed:
    """One transaction of one producer."""

    def __init__(self, producer: tuple[int, int]) -> None:
        self.producer = producer
        # Where it has written.
        self.partitions: set[TopicPartition] = set()
        # Whether its producer was told that it is committed, or that it is aborted.
        self.told: bool | None = None
        # By partition whether it was committed.
        self.fate: dict[TopicPartition, bool] = {}

    def check(self) -> None:
        fates = set(self.fate.values())
        assert len(fates) <= 1, f"torn: {self.producer} {self.fate}"
        assert self.told is None or not fates or fates == {self.told}, f"{self.producer} told {self.told}"


class Log:
    """One partition, as far as it knows of producers and transactions."""

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.open: dict[int, Deed] = {}
        self._epochs: dict[int, int] = {}
        self._coordinators: dict[int, int] = {}

    def write(self, deed: Deed) -> bool:
        """Whether it is let in: not from an epoch that is over."""
        producer_id, epoch = deed.producer
        if epoch < self._epochs.get(producer_id, -1) or self.open.get(producer_id, deed) is not deed:
            return False
        self._epochs[producer_id] = epoch
        self.open[producer_id] = deed
        deed.partitions.add(self.tp)
        return True

    def mark(self, ended: MarkersToWrite) -> bool:
        """Whether the marker is there: not from a replaced coordinator, nor for an epoch that is over."""
        producer_id = ended.producer_id
        epoch = self._epochs.get(producer_id, -1)
        if ended.coordinator_epoch < self._coordinators.get(producer_id, -1) or ended.producer_epoch < epoch:
            return False
        is_same = ended.producer_epoch == epoch
        if ended.transaction_version >= 2 and is_same and producer_id in self.open:
            # It has come late: what is open now is of the epoch that follows its transaction.
            return False
        self._coordinators[producer_id] = ended.coordinator_epoch
        self._epochs[producer_id] = ended.producer_epoch
        deed = self.open.pop(producer_id, None)
        if deed is not None:
            deed.fate[self.tp] = ended.commit
            deed.check()
        return True


class Producer:
    """One process. It asks again while it does not know; what it is told to be final, ends it."""

    def __init__(self, world: TxnWorld, transactional_id: str, *, is_new: bool, two_phase: bool) -> None:
        self.world = world
        self.id = transactional_id
        self.is_new = is_new
        self.two_phase = two_phase
        self.owner: tuple[int, int] | None = None
        self.deed: Deed | None = None
        # Asked for, and not answered yet.
        self.ending: bool | None = None
        self.is_out = False
        # Kept over a restart: it may only be ended.
        self.is_kept = False
        # What it has sent and may be delivered late.
        self.sent: list[tuple[tuple[int, int], bool]] = []

    def begin(
        self, *, says_who: bool = False, keep: bool = False, hears: bool = True
    ) -> InitProducerIdResponse | None:
        """Ask for an id and an epoch; as the one it was, if it was one."""
        was = self.owner if says_who and self.owner is not None else (-1, -1)
        answer: InitProducerIdResponse | None = self.world.init(
            self.id,
            version=6 if self.two_phase or keep else 4,
            timeout_ms=30_000,
            was=was,
            two_phase=self.two_phase,
            keep=keep,
        )
        if answer is None or not hears:
            return None
        if answer.error_code == ErrorCode.NONE:
            self.owner = answer.producer_id, answer.producer_epoch
            self.deed, self.ending, self.is_kept = None, None, False
        elif answer.error_code not in AGAIN:
            self.is_out = True
        return answer

    def write(self, log: Log, *, hears: bool) -> None:
        """Add a partition, and write to it."""
        if self.owner is None or self.ending is not None or self.is_kept:
            return
        answer = self.world.add(
            self.owner, log.tp, transactional_id=self.id, version=NEW_ADD if self.is_new else OLD_ADD
        )
        if answer is None or not hears:
            return
        (code,) = codes(answer)
        if code == ErrorCode.NONE:
            if self.deed is None:
                self.deed = Deed(self.owner)
            assert log.write(self.deed), f"{log.tp} refuses {self.deed.producer}"
        elif code not in AGAIN:
            self.is_out = True

    def end(self, *, commit: bool, hears: bool) -> None:
        """End the transaction, or ask again how it ended."""
        if self.owner is None or (self.deed is None and (commit or not self.is_new)):
            return
        if self.ending is None:
            self.ending = commit
        self.sent.append((self.owner, self.ending))
        answer = self.world.end(
            self.owner,
            commit=self.ending,
            version=NEW_END if self.is_new else OLD_END,
            transactional_id=self.id,
        )
        if answer is not None and hears:
            self._ended(answer, commit=self.ending)

    def _ended(self, answer: EndTxnResponse, *, commit: bool) -> None:
        if answer.error_code in AGAIN:
            return
        if answer.error_code != ErrorCode.NONE:
            self.is_out = True
            return
        if self.deed is not None:
            self.deed.told = commit
            self.deed.check()
        self.deed, self.ending, self.is_kept = None, None, False
        if self.is_new:
            self.owner = answer.producer_id, answer.producer_epoch
