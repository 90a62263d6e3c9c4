"""Refusal of a request: Kafka's error code and a message."""

from barnabas.base.errors import BarnabasError
from barnabas.protocol.error_codes import ErrorCode


class Refused(BarnabasError):
    """Raised by guards before any state has changed. Each API converts it to its own response."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
