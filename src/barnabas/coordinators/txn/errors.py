"""Why the coordinator of transactions refuses something, or cannot decide yet."""

from barnabas.base.errors import BarnabasError
from barnabas.coordinators.decision.errors import Refused


class TxnError(Refused):
    """The code that Kafka gives, and the facts."""


class NeedsProducerId(BarnabasError):
    """Nothing has changed: ask again, with a producer id that nobody has."""

    def __init__(self) -> None:
        super().__init__("a producer id is needed")
