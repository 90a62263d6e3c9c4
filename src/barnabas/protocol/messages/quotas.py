"""Client quotas: DescribeClientQuotas, AlterClientQuotas."""

from barnabas.protocol.schema.fields import array, boolean, float64, int8, int16, int32, string
from barnabas.protocol.schema.struct import request, response, struct


@struct
class ComponentData:
    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(null="0+")


@request(48, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    """v1 flexible"""

    components: list[ComponentData] = array(ComponentData)
    strict: bool = boolean()


@struct
class EntityData:
    entity_type: str = string()
    entity_name: str | None = string(null="0+")


@struct
class ValueData:
    key: str = string()
    value: float = float64()


@struct
class DescribeClientQuotasResponseEntryData:
    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


@response(48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    """v1 flexible"""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    entries: list[DescribeClientQuotasResponseEntryData] | None = array(
        DescribeClientQuotasResponseEntryData, null="0+"
    )


@struct
class OpData:
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


@struct
class AlterClientQuotasEntryData:
    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


@request(49, versions="0-1", flexible="1+", listeners="broker controller")
class AlterClientQuotasRequest:
    """v1 flexible"""

    entries: list[AlterClientQuotasEntryData] = array(AlterClientQuotasEntryData)
    validate_only: bool = boolean()


@struct
class AlterClientQuotasResponseEntryData:
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    entity: list[EntityData] = array(EntityData)


@response(49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    """v1 flexible"""

    throttle_time_ms: int = int32()
    entries: list[AlterClientQuotasResponseEntryData] = array(AlterClientQuotasResponseEntryData)
