"""BrokerRegistration (62), UnregisterBroker (64), ControllerRegistration (70): cluster membership.

A broker's epoch is the offset of its registration. A new incarnation of a broker may have lost unflushed
records, unless it sends its previous epoch, which proves a clean shutdown.
"""

from barnabas.base.ids import Uuid
from barnabas.controller.decision import RECORDS_PER_REQUEST_MAX, Contact, Decision, Refused
from barnabas.controller.effective import elr_enabled
from barnabas.controller.facts import KRAFT_FEATURE, Facts, FeatureRange
from barnabas.controller.leadership import eligible_on, in_sync_on, updates
from barnabas.controller.refusals import refusal
from barnabas.metadata.image import METADATA_VERSION, BrokerImage, MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.brokers import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from barnabas.protocol.stored.cluster_nodes import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
)
from barnabas.protocol.stored.framing import Versioned

# Directory ids below this number are reserved (KIP-858).
_RESERVED_DIRECTORIES = 100


def register_broker(image: MetadataImage, request: BrokerRegistrationRequest, facts: Facts) -> Decision:
    existing = image.brokers.get(request.broker_id)
    try:
        _check(image, request, facts, existing)
    except Refused as refused:
        return Decision((), refusal(request, refused.code))
    record = _record(request)
    records: list[object] = []
    is_new = existing is None or existing.registration.incarnation_id != request.incarnation_id
    if existing is None or is_new:
        clean = existing is not None and existing.epoch == request.previous_broker_epoch
        records += _after_restart(image, request.broker_id, facts, clean=clean)
        record.broker_epoch = facts.next_offset
    else:
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
        record.broker_epoch = existing.epoch
    contact = Contact(
        broker_id=request.broker_id,
        metadata_offset=-1,
        fenced=record.fenced,
        registered=True,
        is_new=is_new,
    )
    response = BrokerRegistrationResponse(broker_epoch=record.broker_epoch)
    return Decision((*records, record), response, contact=contact)


def unregister_broker(image: MetadataImage, request: UnregisterBrokerRequest, facts: Facts) -> Decision:
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        message = f"Broker ID {request.broker_id} is not currently registered"
        return Decision((), refusal(request, ErrorCode.BROKER_ID_NOT_REGISTERED, message))
    records: list[object] = []
    for affected in (in_sync_on(image, broker.id), eligible_on(image, broker.id)):
        records += updates(image, facts.settings, affected, removed=broker.id)
    if len(records) >= RECORDS_PER_REQUEST_MAX:
        return Decision((), refusal(request, ErrorCode.POLICY_VIOLATION))
    records.append(UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch))
    return Decision(tuple(records), UnregisterBrokerResponse(), atomic=False)


def register_controller(
    image: MetadataImage, request: ControllerRegistrationRequest, facts: Facts
) -> Decision:
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        # There is no ZooKeeper to migrate from.
        zk_migration_ready=False,
        end_points=[
            ControllerEndpoint(
                name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol
            )
            for one in request.listeners
        ],
        features=[
            ControllerFeature(
                name=one.name,
                min_supported_version=one.min_supported_version,
                max_supported_version=one.max_supported_version,
            )
            for one in request.features
        ],
    )
    return Decision((record,), ControllerRegistrationResponse())


def _check(
    image: MetadataImage, request: BrokerRegistrationRequest, facts: Facts, existing: BrokerImage | None
) -> None:
    if request.cluster_id != facts.settings.cluster_id:
        raise Refused(ErrorCode.INCONSISTENT_CLUSTER_ID)
    is_other = existing is not None and existing.registration.incarnation_id != request.incarnation_id
    if is_other and facts.sessions.is_alive(request.broker_id, facts.now_ms):
        raise Refused(ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    if request.is_migrating_zk_broker:
        raise Refused(ErrorCode.BROKER_ID_NOT_REGISTERED)
    _check_directories(image, request)
    _check_features(image, request)


def _check_directories(image: MetadataImage, request: BrokerRegistrationRequest) -> None:
    directories = request.log_dirs
    if not directories or len(set(directories)) != len(directories):
        raise Refused(ErrorCode.INVALID_REGISTRATION)
    if any(_is_reserved(one) for one in directories):
        raise Refused(ErrorCode.INVALID_REGISTRATION)
    for broker in image.brokers.values():
        if broker.id != request.broker_id and not set(directories).isdisjoint(broker.registration.log_dirs):
            raise Refused(ErrorCode.INVALID_REGISTRATION)


def _is_reserved(directory: Uuid) -> bool:
    return int.from_bytes(directory, "big") < _RESERVED_DIRECTORIES


def _check_features(image: MetadataImage, request: BrokerRegistrationRequest) -> None:
    supported = {
        one.name: FeatureRange(one.min_supported_version, one.max_supported_version)
        for one in request.features
    }
    if METADATA_VERSION not in supported:
        raise Refused(ErrorCode.INVALID_REGISTRATION)
    # A feature that is not finalized has level 0.
    finalized = {**dict.fromkeys(supported, 0), KRAFT_FEATURE: 0, **image.features}
    for name, level in finalized.items():
        if level not in supported.get(name, FeatureRange(0, 0)):
            raise Refused(ErrorCode.UNSUPPORTED_VERSION)


def _record(request: BrokerRegistrationRequest) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            BrokerEndpoint(
                name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol
            )
            for one in request.listeners
        ],
        features=[
            BrokerFeature(
                name=one.name,
                min_supported_version=one.min_supported_version,
                max_supported_version=one.max_supported_version,
            )
            for one in request.features
        ],
        rack=request.rack,
        fenced=True,
        log_dirs=list(request.log_dirs),
    )


def _after_restart(image: MetadataImage, broker_id: int, facts: Facts, *, clean: bool) -> list[object]:
    """Remove a restarted broker from all ISRs and, unless its shutdown was clean, from all ELRs."""
    if clean or not elr_enabled(image):
        return [*updates(image, facts.settings, in_sync_on(image, broker_id), removed=broker_id)]
    affected = [*in_sync_on(image, broker_id), *eligible_on(image, broker_id)]
    return [*updates(image, facts.settings, affected, unclean=broker_id)]


def as_written(record: object) -> object:
    """The record, with its version if it is not written in the newest one.

    Changes of a broker's registration are the exception: like Kafka, write the oldest version that has the
    changed fields.
    """
    if not isinstance(record, BrokerRegistrationChangeRecord):
        return record
    if record.cordoned_log_dirs is not None:
        return Versioned(record, 3)
    if record.log_dirs:
        return Versioned(record, 2)
    return Versioned(record, 1 if record.in_controlled_shutdown else 0)
