"""Requests to the active controller: registration, heartbeat, Envelope, UpdateFeatures."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import (
    array,
    binary,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)
from barnabas.protocol.schema.struct import request, response, struct


@struct
class Listener:
    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


@struct
class Feature:
    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@request(62, versions="0-4", flexible="0+", listeners="controller")
class BrokerRegistrationRequest:
    """v1 is_migrating_zk_broker; v2 log_dirs; v3 previous_broker_epoch"""

    broker_id: int = int32()
    cluster_id: str = string()
    incarnation_id: Uuid = uuid()
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)
    rack: str | None = string(null="0+")
    is_migrating_zk_broker: bool = boolean("1+")
    log_dirs: list[Uuid] = array(uuid, "2+", ignorable=True)
    previous_broker_epoch: int = int64("3+", default=-1, ignorable=True)


@response(62, versions="0-4", flexible="0+")
class BrokerRegistrationResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    broker_epoch: int = int64(default=-1)


@request(63, versions="0-2", flexible="0+", listeners="controller")
class BrokerHeartbeatRequest:
    """v1 offline_log_dirs; v2 cordoned_log_dirs"""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    current_metadata_offset: int = int64()
    want_fence: bool = boolean()
    want_shut_down: bool = boolean()
    offline_log_dirs: list[Uuid] = array(uuid, "1+", tag=0)
    cordoned_log_dirs: list[Uuid] | None = array(uuid, "2+", null="2+", default=None, tag=1)


@response(63, versions="0-2", flexible="0+")
class BrokerHeartbeatResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    is_caught_up: bool = boolean()
    is_fenced: bool = boolean(default=True)
    should_shut_down: bool = boolean()


@request(64, versions="0", flexible="0+", listeners="broker controller")
class UnregisterBrokerRequest:
    broker_id: int = int32()


@response(64, versions="0", flexible="0+")
class UnregisterBrokerResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")


@request(70, versions="0", flexible="0+", listeners="controller")
class ControllerRegistrationRequest:
    controller_id: int = int32()
    incarnation_id: Uuid = uuid()
    zk_migration_ready: bool = boolean()
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)


@response(70, versions="0", flexible="0+")
class ControllerRegistrationResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")


@request(58, versions="0", flexible="0+", listeners="controller")
class EnvelopeRequest:
    request_data: bytes = binary()
    request_principal: bytes | None = binary(null="0+")
    client_host_address: bytes = binary()


@response(58, versions="0", flexible="0+")
class EnvelopeResponse:
    response_data: bytes | None = binary(null="0+", default=None)
    error_code: int = int16()


@struct
class FeatureUpdateKey:
    feature: str = string()
    max_version_level: int = int16()
    allow_downgrade: bool = boolean("0")
    upgrade_type: int = int8("1+", default=1)


@request(57, versions="0-2", flexible="0+", listeners="broker controller")
class UpdateFeaturesRequest:
    """v1 validate_only, no allow_downgrade, upgrade_type"""

    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = boolean("1+")


@struct
class UpdatableFeatureResult:
    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(null="0+")


@response(57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    """v2 no results"""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, "0-1", ignorable=True)
