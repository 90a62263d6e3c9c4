"""Headers of requests and responses, and authentication: SaslHandshake, SaslAuthenticate."""

from barnabas.protocol.schema.fields import array, binary, int16, int32, int64, string
from barnabas.protocol.schema.struct import message, request, response


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


@request(17, versions="0-1", flexible="none", listeners="broker controller")
class SaslHandshakeRequest:
    mechanism: str = string()


@response(17, versions="0-1", flexible="none")
class SaslHandshakeResponse:
    error_code: int = int16()
    mechanisms: list[str] = array(string)


@request(36, versions="0-2", flexible="2+", listeners="broker controller")
class SaslAuthenticateRequest:
    """v2 flexible"""

    auth_bytes: bytes = binary()


@response(36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    """v1 session_lifetime_ms; v2 flexible"""

    error_code: int = int16()
    error_message: str | None = string(null="0+")
    auth_bytes: bytes = binary()
    session_lifetime_ms: int = int64("1+", ignorable=True)
