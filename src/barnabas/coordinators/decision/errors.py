"""Why a coordinator refuses something: the code that Kafka gives, and the facts."""

from barnabas.base.errors import BarnabasError
from barnabas.protocol.error_codes import ErrorCode


class Refused(BarnabasError):
    """Raised by guards, before anything has changed; each API says it in its own answer."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
