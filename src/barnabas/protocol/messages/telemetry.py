"""Client metrics (KIP-714): GetTelemetrySubscriptions, PushTelemetry."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, binary, boolean, int8, int16, int32, string, uuid
from barnabas.protocol.schema.struct import request, response


@request(71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest:
    client_instance_id: Uuid = uuid()


@response(71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    client_instance_id: Uuid = uuid()
    subscription_id: int = int32()
    accepted_compression_types: list[int] = array(int8)
    push_interval_ms: int = int32()
    telemetry_max_bytes: int = int32()
    delta_temporality: bool = boolean()
    requested_metrics: list[str] = array(string)


@request(72, versions="0", flexible="0+")
class PushTelemetryRequest:
    client_instance_id: Uuid = uuid()
    subscription_id: int = int32()
    terminating: bool = boolean()
    compression_type: int = int8()
    metrics: bytes = binary()


@response(72, versions="0", flexible="0+")
class PushTelemetryResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
