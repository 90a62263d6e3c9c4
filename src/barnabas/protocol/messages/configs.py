"""Settings: DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from barnabas.protocol.schema.fields import array, boolean, int8, int16, int32, string
from barnabas.protocol.schema.struct import request, response, struct


@struct
class DescribeConfigsResource:
    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: list[str] | None = array(string, null="0+")


@request(32, versions="1-4", flexible="4+", listeners="broker controller")
class DescribeConfigsRequest:
    """v3 include_documentation; v4 flexible"""

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean()
    include_documentation: bool = boolean("3+")


@struct
class DescribeConfigsSynonym:
    name: str = string()
    value: str | None = string(null="0+")
    source: int = int8()


@struct
class DescribeConfigsResourceResult:
    name: str = string()
    value: str | None = string(null="0+")
    read_only: bool = boolean()
    config_source: int = int8(default=-1)
    is_sensitive: bool = boolean()
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym)
    config_type: int = int8("3+", ignorable=True)
    documentation: str | None = string("3+", null="3+", ignorable=True)


@struct
class DescribeConfigsResult:
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


@response(32, versions="1-4", flexible="4+")
class DescribeConfigsResponse:
    """v3 config_type, documentation; v4 flexible"""

    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)


@struct
class AlterConfigsAlterableConfig:
    name: str = string()
    value: str | None = string(null="0+")


@struct
class AlterConfigsResourceRequest:
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterConfigsAlterableConfig] = array(AlterConfigsAlterableConfig)


@request(33, versions="0-2", flexible="2+", listeners="broker controller")
class AlterConfigsRequest:
    """v2 flexible"""

    resources: list[AlterConfigsResourceRequest] = array(AlterConfigsResourceRequest)
    validate_only: bool = boolean()


@struct
class AlterConfigsResourceResponse:
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    resource_type: int = int8()
    resource_name: str = string()


@response(33, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    """v2 flexible"""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)


@struct
class IncrementalAlterConfigsAlterableConfig:
    name: str = string()
    config_operation: int = int8()
    value: str | None = string(null="0+")


@struct
class IncrementalAlterConfigsAlterConfigsResource:
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[IncrementalAlterConfigsAlterableConfig] = array(IncrementalAlterConfigsAlterableConfig)


@request(44, versions="0-1", flexible="1+", listeners="broker controller")
class IncrementalAlterConfigsRequest:
    """v1 flexible"""

    resources: list[IncrementalAlterConfigsAlterConfigsResource] = array(
        IncrementalAlterConfigsAlterConfigsResource
    )
    validate_only: bool = boolean()


@response(44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    """v1 flexible"""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)


@request(74, versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    """v1 resource_types"""

    resource_types: list[int] = array(int8, "1+")


@struct
class ConfigResource:
    resource_name: str = string()
    resource_type: int = int8("1+", default=16, ignorable=True)


@response(74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    """v1 resource_type"""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
