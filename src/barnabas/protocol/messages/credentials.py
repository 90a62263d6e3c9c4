"""SCRAM credentials and delegation tokens: keys 38-41, 50, 51."""

from barnabas.protocol.schema.fields import array, binary, int8, int16, int32, int64, string
from barnabas.protocol.schema.struct import request, response, struct


@struct
class CreatableRenewers:
    principal_type: str = string()
    principal_name: str = string()


@request(38, versions="1-3", flexible="2+", listeners="broker controller")
class CreateDelegationTokenRequest:
    """v2 flexible; v3 owner_principal_type, owner_principal_name"""

    owner_principal_type: str | None = string("3+", null="3+")
    owner_principal_name: str | None = string("3+", null="3+")
    renewers: list[CreatableRenewers] = array(CreatableRenewers)
    max_lifetime_ms: int = int64()


@response(38, versions="1-3", flexible="2+")
class CreateDelegationTokenResponse:
    """v2 flexible; v3 token_requester_principal_type, token_requester_principal_name"""

    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = binary()
    throttle_time_ms: int = int32()


@request(39, versions="1-2", flexible="2+", listeners="broker controller")
class RenewDelegationTokenRequest:
    """v2 flexible"""

    hmac: bytes = binary()
    renew_period_ms: int = int64()


@response(39, versions="1-2", flexible="2+")
class RenewDelegationTokenResponse:
    """v2 flexible"""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()


@request(40, versions="1-2", flexible="2+", listeners="broker controller")
class ExpireDelegationTokenRequest:
    """v2 flexible"""

    hmac: bytes = binary()
    expiry_time_period_ms: int = int64()


@response(40, versions="1-2", flexible="2+")
class ExpireDelegationTokenResponse:
    """v2 flexible"""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()


@struct
class DescribeDelegationTokenOwner:
    principal_type: str = string()
    principal_name: str = string()


@request(41, versions="1-3", flexible="2+", listeners="broker controller")
class DescribeDelegationTokenRequest:
    """v2 flexible"""

    owners: list[DescribeDelegationTokenOwner] | None = array(DescribeDelegationTokenOwner, null="0+")


@struct
class DescribedDelegationTokenRenewer:
    principal_type: str = string()
    principal_name: str = string()


@struct
class DescribedDelegationToken:
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp: int = int64()
    expiry_timestamp: int = int64()
    max_timestamp: int = int64()
    token_id: str = string()
    hmac: bytes = binary()
    renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer)


@response(41, versions="1-3", flexible="2+")
class DescribeDelegationTokenResponse:
    """v2 flexible; v3 token_requester_principal_type, token_requester_principal_name"""

    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken)
    throttle_time_ms: int = int32()


@struct
class UserName:
    name: str = string()


@request(50, versions="0", flexible="0+", listeners="broker controller")
class DescribeUserScramCredentialsRequest:
    users: list[UserName] | None = array(UserName, null="0+")


@struct
class CredentialInfo:
    mechanism: int = int8()
    iterations: int = int32()


@struct
class DescribeUserScramCredentialsResult:
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    credential_infos: list[CredentialInfo] = array(CredentialInfo)


@response(50, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)


@struct
class ScramCredentialDeletion:
    name: str = string()
    mechanism: int = int8()


@struct
class ScramCredentialUpsertion:
    name: str = string()
    mechanism: int = int8()
    iterations: int = int32()
    salt: bytes = binary()
    salted_password: bytes = binary()


@request(51, versions="0", flexible="0+", listeners="broker controller")
class AlterUserScramCredentialsRequest:
    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


@struct
class AlterUserScramCredentialsResult:
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(null="0+")


@response(51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    throttle_time_ms: int = int32()
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)
