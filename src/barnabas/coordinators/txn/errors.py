"""Refusals of the transaction coordinator, and the request for a producer id."""

from barnabas.base.errors import BarnabasError
from barnabas.coordinators.decision.errors import Refused


class TxnError(Refused):
    """A refused request: Kafka's error code and a message."""


class NeedsProducerId(BarnabasError):
    """The decision needs an unused producer id. No state has changed: repeat the call with one."""

    def __init__(self) -> None:
        super().__init__("a new producer id is required")
