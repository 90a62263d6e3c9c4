"""A principal as brokers forward it inside Envelope."""

from barnabas.protocol.schema.fields import boolean, string
from barnabas.protocol.schema.struct import message


@message("data", versions="0", flexible="0+")
class DefaultPrincipalData:
    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()
