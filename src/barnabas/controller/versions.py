"""Choose the version in which a record is written.

Records are written in the newest version of their schema. Changes of a broker's registration are the
exception: like Kafka, write the oldest version that has the changed fields.
"""

from barnabas.protocol.stored.cluster_nodes import BrokerRegistrationChangeRecord
from barnabas.protocol.stored.framing import Versioned


def as_written(record: object) -> object:
    """The record, with its version if it is not the newest."""
    if not isinstance(record, BrokerRegistrationChangeRecord):
        return record
    if record.cordoned_log_dirs is not None:
        return Versioned(record, 3)
    if record.log_dirs:
        return Versioned(record, 2)
    return Versioned(record, 1 if record.in_controlled_shutdown else 0)
