"""State shared by the parts of one transaction shard."""

from collections.abc import Callable
from typing import Final

from barnabas.coordinators.decision.outcome import Outcome, ReplyTo
from barnabas.coordinators.decision.timers import Timers
from barnabas.coordinators.txn.markers import Marking
from barnabas.coordinators.txn.record import TxnRecord, fit, record_version
from barnabas.coordinators.txn.settings import TxnSettings
from barnabas.coordinators.txn.state import Txn, TxnState


class TxnGround:
    """The shell replaces `settings`. `markers` receives markers to write; `epoch` is our leader epoch.

    `batch_bytes_max` returns the current maximum size of a batch.
    """

    def __init__(
        self, settings: TxnSettings, markers: ReplyTo, epoch: int, batch_bytes_max: Callable[[], int]
    ) -> None:
        self.settings = settings
        self.markers: Final = markers
        self.epoch: Final = epoch
        self.batch_bytes_max: Final = batch_bytes_max
        self.timers: Final = Timers()
        # Only put() changes these two. Ongoing transactions are in the order in which they started.
        self.txns: Final[dict[str, Txn]] = {}
        self.ongoing: Final[dict[str, None]] = {}
        # Transactions whose markers are being written, by transactional id.
        self.marking: Final[dict[str, Marking]] = {}

    def write(self, outcome: Outcome, transactional_id: str, txn: Txn) -> None:
        version = record_version(self.settings.transaction_version)
        outcome.write(TxnRecord(transactional_id, fit(txn, version), version))

    def put(self, transactional_id: str, txn: Txn | None) -> None:
        """Apply a record that was written or loaded."""
        if txn is None or not txn.is_prepared:
            self.marking.pop(transactional_id, None)
        if txn is not None and txn.state is TxnState.ONGOING:
            self.ongoing[transactional_id] = None
        else:
            self.ongoing.pop(transactional_id, None)
        if txn is None:
            self.txns.pop(transactional_id, None)
        else:
            self.txns[transactional_id] = txn
