"""Keys of access control records in an image: ACLs, credentials, quotas, tokens.

No package uses these records yet. MetadataImage.access keeps them, so that a log with them can be read and
its snapshots are complete.
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
    """The key of a record, which is the same for the record that removes it."""
    match record:
        case AccessControlEntryRecord() | RemoveAccessControlEntryRecord():
            return ACL, record.id
        case ClientQuotaRecord():
            # The name None stands for the default of all entities of the type.
            entity = sorted(((one.entity_type, one.entity_name) for one in record.entity), key=itemgetter(0))
            return QUOTA, tuple(entity), record.key
        case UserScramCredentialRecord() | RemoveUserScramCredentialRecord():
            return SCRAM, record.name, record.mechanism
        case DelegationTokenRecord() | RemoveDelegationTokenRecord():
            return TOKEN, record.token_id
    raise AssertionError(f"not an access control record: {record!r}")
