"""What a decision is: records to be written, and the answer that may be given once they are committed."""

from typing import Final, NamedTuple

from barnabas.base.errors import BarnabasError
from barnabas.base.values import value
from barnabas.protocol.error_codes import ErrorCode

# Kafka's limits on what one request may change.
RECORDS_PER_REQUEST_MAX: Final = 10_000
PARTITIONS_PER_REQUEST_MAX: Final = 10_000


class Contact(NamedTuple):
    """A sign of life from a broker, and what its session has to remember of it."""

    broker_id: int
    # How far the broker has read the metadata log; -1 if it did not say.
    metadata_offset: int
    # Whether the broker counts as fenced once the records are applied.
    fenced: bool
    shutting_down: bool = False
    # It was registered, or registered again.
    registered: bool = False
    # A new incarnation of the broker: what was remembered of the one before is void.
    is_new: bool = False


@value
class Decision:
    """`records` are one batch if `atomic`; otherwise they may be cut into several, in their order."""

    records: tuple[object, ...]
    response: object = None
    atomic: bool = True
    contact: Contact | None = None


class Refused(BarnabasError):
    """One part of a request cannot be done. Whoever works on the whole request puts it into the answer."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code = code
        self.message = message
