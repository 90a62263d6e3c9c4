"""Refusals of the transaction coordinator, and the request for a producer id."""

from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.coordinators.decision.outcome import Outcome, Refused

# The decision needs an unused producer id. No state has changed: repeat the call with one.
NEEDS_PRODUCER_ID: Final = Outcome()


class TxnError(Refused):
    """A refused request: Kafka's error code and a message."""


class NeedsProducerId(BarnabasError):
    """Raised within a decision, whose outcome is then NEEDS_PRODUCER_ID."""

    def __init__(self) -> None:
        super().__init__("a new producer id is required")
