"""What identifies the records of access control in an image: ACLs, credentials, quotas, tokens.

The rooms that will use them read MetadataImage.access; until then they are kept, so that a log that has them
can be read, and a snapshot of it is complete.
"""

from operator import itemgetter
from typing import Any, Final

from barnabas.protocol.stored.cluster_access import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

ACL: Final = "acl"
QUOTA: Final = "quota"
SCRAM: Final = "scram"
TOKEN: Final = "token"


def access_key(record: object) -> tuple[Any, ...]:
    """The same for a record and for the one that takes it back."""
    match record:
        case AccessControlEntryRecord() | RemoveAccessControlEntryRecord():
            return ACL, record.id
        case ClientQuotaRecord():
            # The name None is the default of all entities of that type.
            entity = sorted(((one.entity_type, one.entity_name) for one in record.entity), key=itemgetter(0))
            return QUOTA, tuple(entity), record.key
        case UserScramCredentialRecord() | RemoveUserScramCredentialRecord():
            return SCRAM, record.name, record.mechanism
        case DelegationTokenRecord() | RemoveDelegationTokenRecord():
            return TOKEN, record.token_id
    raise AssertionError(f"not about access: {record!r}")
