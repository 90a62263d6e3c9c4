"""Which data was aborted, and which markers nobody needs any more (compiled).

A log is fed batch by batch, in the order of offsets. A producer's batches are aborted from the first offset
of its aborted transaction on, until its marker comes by. A marker may go when no batch of its transaction was
met: compaction took the data away in an earlier run, and a reader who has to know how the transaction ended
cannot be anywhere in it any more, once the delete horizon has passed too.
"""

from collections.abc import Iterable, Sequence

from mypy_extensions import i64

from barnabas.records.control import ControlType
from barnabas.storage.cleaner.batch import Batch
from barnabas.storage.segment.txn_index import AbortedTxn


class Transactions:
    """The transactions that are open at the batch that was fed last.

    No batch before the offset `read_from` will be fed: a transaction whose marker lies there is over. Those
    of the producers `open_before` were open there: their data is gone, but not what is known of them.
    """

    def __init__(
        self, aborted: Sequence[AbortedTxn], read_from: int, open_before: Iterable[int] = ()
    ) -> None:
        # Those that begin later; the earliest is the last, so that it can be popped.
        self._coming = sorted(
            (txn for txn in aborted if txn.last_offset >= read_from), key=first_offset, reverse=True
        )
        self._aborting: dict[int, AbortedTxn] = {}
        # Producers with an open transaction of which a batch was met. Or would have been: without the marker
        # the snapshot where the log begins would have them open for ever.
        self._has_data: set[int] = set(open_before)
        # Aborted transactions whose markers stay: readers must still be told of them.
        self._kept: list[AbortedTxn] = []

    def take_kept(self) -> list[AbortedTxn]:
        """The aborted transactions of which a marker was fed, and has to stay, since this was called last."""
        kept = self._kept
        self._kept = []
        return kept

    def is_aborted(self, batch: Batch) -> bool:
        """Feed a batch of data: whether its transaction was aborted."""
        self._begin_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        producer: int = batch.producer_id
        self._has_data.add(producer)
        return producer in self._aborting

    def is_done_with(self, batch: Batch) -> bool:
        """Feed an unpacked control batch: whether nobody needs it, but for the delete horizon."""
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
            # If the last one has no marker, it goes on: both end with the next marker.
            self._aborting.setdefault(begun.producer_id, begun)


ABORT: i64 = int(ControlType.ABORT)
COMMIT: i64 = int(ControlType.COMMIT)


def first_offset(aborted: AbortedTxn) -> int:
    return aborted.first_offset
