"""Changes of brokers. Part of changes.py, which handles the other records."""

from copy import copy
from typing import Final

from barnabas.metadata.errors import MetadataInconsistent
from barnabas.metadata.image import BrokerImage, MetadataImage, mutable_copy
from barnabas.protocol.stored.cluster_nodes import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

# Values of `fenced` in BrokerRegistrationChangeRecord; 0 means unchanged.
FENCE: Final = 1
UNFENCE: Final = -1
# Value of `in_controlled_shutdown`; only a new registration ends a controlled shutdown.
SHUTTING_DOWN: Final = 1


class BrokerChanges:
    """Changed brokers by id, on top of an image; None for a removed one."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._brokers: dict[int, BrokerImage | None] = {}

    @property
    def changed(self) -> set[int]:
        return set(self._brokers)

    def register(self, record: RegisterBrokerRecord) -> None:
        self._put(record)

    def unregister(self, record: UnregisterBrokerRecord) -> None:
        self._known(record.broker_id, record.broker_epoch, record)
        self._brokers[record.broker_id] = None

    def alter(self, record: BrokerRegistrationChangeRecord) -> None:
        known = self._known(record.broker_id, record.broker_epoch, record)
        if record.fenced not in (FENCE, 0, UNFENCE):
            raise MetadataInconsistent(record, "fenced is not 1, 0 or -1")
        if record.in_controlled_shutdown not in (SHUTTING_DOWN, 0):
            raise MetadataInconsistent(record, "in_controlled_shutdown is not 1 or 0")
        registration = copy(known.registration)
        if record.fenced:
            registration.fenced = record.fenced == FENCE
        if record.in_controlled_shutdown:
            registration.in_controlled_shutdown = True
        if record.log_dirs:
            registration.log_dirs = record.log_dirs
        if record.cordoned_log_dirs is not None:
            registration.cordoned_log_dirs = record.cordoned_log_dirs
        self._put(registration)

    def fence(self, record: FenceBrokerRecord | UnfenceBrokerRecord) -> None:
        """Apply a record type of the first KRaft releases."""
        registration = copy(self._known(record.id, record.epoch, record).registration)
        registration.fenced = isinstance(record, FenceBrokerRecord)
        self._put(registration)

    def finish(self) -> dict[int, BrokerImage]:
        brokers = mutable_copy(self._image.brokers)
        for broker_id, broker in self._brokers.items():
            if broker is None:
                brokers.pop(broker_id, None)
            else:
                brokers[broker_id] = broker
        return brokers

    def _put(self, registration: RegisterBrokerRecord) -> None:
        self._brokers[registration.broker_id] = BrokerImage(
            id=registration.broker_id,
            epoch=registration.broker_epoch,
            fenced=registration.fenced,
            in_controlled_shutdown=registration.in_controlled_shutdown,
            registration=registration,
        )

    def _known(self, broker_id: int, epoch: int, record: object) -> BrokerImage:
        known = self._brokers[broker_id] if broker_id in self._brokers else self._image.brokers.get(broker_id)
        if known is None:
            raise MetadataInconsistent(record, f"broker {broker_id} is not registered")
        if known.epoch != epoch:
            raise MetadataInconsistent(record, f"broker {broker_id} has epoch {known.epoch}, not {epoch}")
        return known
