"""What the parts of one shard share."""

from typing import Final

from barnabas.coordinators.decision.outcome import ReplyTo
from barnabas.coordinators.decision.timers import Timers
from barnabas.coordinators.txn.settings import TxnSettings


class TxnGround:
    """The shell replaces `settings` and hands in who writes markers; `epoch` is that of our leadership."""

    def __init__(self, settings: TxnSettings, markers: ReplyTo, epoch: int) -> None:
        self.settings = settings
        self.markers: Final = markers
        self.epoch: Final = epoch
        self.timers: Final = Timers()
