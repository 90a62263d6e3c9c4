"""Records of the metadata log: ACLs, quotas, SCRAM credentials, delegation tokens."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, binary, boolean, float64, int8, int32, int64, string, uuid
from barnabas.protocol.schema.struct import message, struct


@message("metadata", key=18, versions="0", flexible="0+")
class AccessControlEntryRecord:
    id: Uuid = uuid()
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8()
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message("metadata", key=19, versions="0", flexible="0+")
class RemoveAccessControlEntryRecord:
    id: Uuid = uuid()


@struct
class EntityData:
    entity_type: str = string()
    entity_name: str | None = string(null="0+")


@message("metadata", key=14, versions="0", flexible="0+")
class ClientQuotaRecord:
    entity: list[EntityData] = array(EntityData)
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


@message("metadata", key=11, versions="0", flexible="0+")
class UserScramCredentialRecord:
    name: str = string()
    mechanism: int = int8()
    salt: bytes = binary()
    stored_key: bytes = binary()
    server_key: bytes = binary()
    iterations: int = int32()


@message("metadata", key=22, versions="0", flexible="0+")
class RemoveUserScramCredentialRecord:
    name: str = string()
    mechanism: int = int8()


@message("metadata", key=10, versions="0", flexible="0+")
class DelegationTokenRecord:
    owner: str = string()
    requester: str = string()
    renewers: list[str] = array(string)
    issue_timestamp: int = int64()
    max_timestamp: int = int64()
    expiration_timestamp: int = int64()
    token_id: str = string()


@message("metadata", key=26, versions="0", flexible="0+")
class RemoveDelegationTokenRecord:
    token_id: str = string()


@message("data", versions="0", flexible="0+")
class DefaultPrincipalData:
    """A principal as brokers forward it inside Envelope."""

    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()
