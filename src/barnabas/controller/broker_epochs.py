"""Check that a request comes from the registered incarnation of a broker."""

from barnabas.controller.decision import Refused
from barnabas.metadata.image import BrokerImage, MetadataImage
from barnabas.protocol.error_codes import ErrorCode


def check_broker_epoch(image: MetadataImage, broker_id: int, epoch: int) -> BrokerImage:
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise Refused(ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
    if broker.epoch != epoch:
        raise Refused(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}",
        )
    return broker
