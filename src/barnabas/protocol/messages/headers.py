"""Request and response headers."""

from barnabas.protocol.schema.fields import int16, int32, string
from barnabas.protocol.schema.struct import message


@message("header", versions="1-2", flexible="2+")
class RequestHeader:
    """v2 flexible"""

    request_api_key: int = int16()
    request_api_version: int = int16()
    correlation_id: int = int32()
    client_id: str | None = string(null="0+", compact=False)


@message("header", versions="0-1", flexible="1+")
class ResponseHeader:
    """v1 flexible"""

    correlation_id: int = int32()
