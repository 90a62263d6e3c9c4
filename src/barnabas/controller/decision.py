"""A decision: records to write, and the response to send once they are committed."""

from typing import Final, NamedTuple

from barnabas.base.errors import BarnabasError
from barnabas.base.values import value
from barnabas.protocol.error_codes import ErrorCode

# Kafka's limits for one request.
RECORDS_PER_REQUEST_MAX: Final = 10_000
PARTITIONS_PER_REQUEST_MAX: Final = 10_000


class Contact(NamedTuple):
    """A sign of life from a broker, to update its session."""

    broker_id: int
    # The broker's offset in the metadata log; -1 if unknown.
    metadata_offset: int
    # Whether the broker is fenced once the records are applied.
    fenced: bool
    shutting_down: bool = False
    # The request was a registration.
    registered: bool = False
    # The broker is a new incarnation, so its old session is dropped.
    is_new: bool = False


@value
class Decision:
    """`records` are one batch if `atomic`; otherwise they may be split into several, in order."""

    records: tuple[object, ...]
    response: object = None
    atomic: bool = True
    contact: Contact | None = None


class Refused(BarnabasError):
    """One part of a request failed. The handler of the request puts this into the response."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code = code
        self.message = message
