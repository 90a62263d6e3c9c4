"""A decision: records to write, and the response to send once they are committed."""

from typing import Final, NamedTuple

from barnabas.base.errors import BarnabasError
from barnabas.base.values import value
from barnabas.metadata.image import BrokerImage, MetadataImage
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


def check_broker_epoch(image: MetadataImage, broker_id: int, epoch: int) -> BrokerImage:
    """Refuse a request that is not from the registered incarnation of a broker."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise Refused(ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
    if broker.epoch != epoch:
        raise Refused(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}",
        )
    return broker
