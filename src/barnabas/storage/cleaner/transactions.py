"""Track aborted data and obsolete markers during compaction (compiled).

Batches are fed in offset order. A producer's batches are aborted from the first offset of its aborted
transaction up to the marker. A marker is obsolete when no batch of its transaction was seen, because an
earlier run removed the data, and when the delete horizon has passed, because no reader can still be inside
the transaction then.
"""

from collections.abc import Iterable, Sequence

from mypy_extensions import i64

from barnabas.records.control import ControlType
from barnabas.storage.cleaner.batch import Batch
from barnabas.storage.segment.txn_index import AbortedTxn


class Transactions:
    """The transactions that are open at the last fed batch.

    Feeding starts at the offset `read_from`; a transaction whose marker lies before it is over. The producers
    in `open_before` had a transaction open there, of which the data is gone but the state is not.
    """

    def __init__(
        self, aborted: Sequence[AbortedTxn], read_from: int, open_before: Iterable[int] = ()
    ) -> None:
        # Transactions that begin later; the earliest comes last, so that it can be popped.
        self._coming = sorted(
            (txn for txn in aborted if txn.last_offset >= read_from), key=first_offset, reverse=True
        )
        self._aborting: dict[int, AbortedTxn] = {}
        # Producers with a batch seen in their open transaction. Those of `open_before` count too: without the
        # marker, the snapshot at the log start would leave their transactions open for ever.
        self._has_data: set[int] = set(open_before)
        # Aborted transactions whose markers stay, so that read_committed readers still learn of them.
        self._kept: list[AbortedTxn] = []

    def take_kept(self) -> list[AbortedTxn]:
        """Return and reset the aborted transactions whose markers were fed and have to stay."""
        kept = self._kept
        self._kept = []
        return kept

    def is_aborted(self, batch: Batch) -> bool:
        """Feed a data batch; return whether its transaction was aborted."""
        self._begin_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        producer: int = batch.producer_id
        self._has_data.add(producer)
        return producer in self._aborting

    def is_done_with(self, batch: Batch) -> bool:
        """Feed an unpacked control batch; return whether it may go once the delete horizon has passed."""
        self._begin_up_to(batch.last_offset)
        if batch.count == 0:
            return True
        kind: i64 = batch.control_type()
        if kind != ABORT and kind != COMMIT:
            return False
        producer: int = batch.producer_id
        aborted = self._aborting.pop(producer, None) if kind == ABORT else None
        had_data = producer in self._has_data
        self._has_data.discard(producer)
        if aborted is not None and had_data:
            self._kept.append(aborted)
        return not had_data

    def _begin_up_to(self, offset: i64) -> None:
        coming = self._coming
        while len(coming) > 0 and coming[-1].first_offset <= offset:
            begun = coming.pop()
            # If an earlier transaction has no marker, both end with the next marker.
            self._aborting.setdefault(begun.producer_id, begun)


ABORT: i64 = int(ControlType.ABORT)
COMMIT: i64 = int(ControlType.COMMIT)


def first_offset(aborted: AbortedTxn) -> int:
    return aborted.first_offset
