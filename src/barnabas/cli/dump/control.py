"""What a control record announces, in words: transaction markers, leader changes, the ends of a snapshot.

Kafka's tool reads every leader change as version 0 and fails on one of version 1, which has directory ids.
Here it is shown.
"""

from typing import Final

from barnabas.base.errors import Malformed
from barnabas.cli.dump.records import Shown
from barnabas.cli.dump.source import DumpFailed
from barnabas.protocol.schema.json import json_text, to_json
from barnabas.protocol.stored.framing import decode_control
from barnabas.records.control import TRANSACTION_MARKERS, ControlType, read_control_type

# Only the first of them is followed by a colon.
_TITLES: Final = {
    ControlType.LEADER_CHANGE: "LeaderChange:",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlType.KRAFT_VERSION: "KRaftVersion",
    ControlType.KRAFT_VOTERS: "KRaftVoters",
}


def describe_control(path: str, record: Shown) -> str:
    """The end of the record's line."""
    try:
        kind = read_control_type(record.key)
        if not isinstance(kind, ControlType):
            return f" controlType: UNKNOWN({kind})"
        if record.value is None:
            raise Malformed("value is missing", where=f"control record {kind.name}")
        message, version = decode_control(kind, record.value)
    except Malformed as wrong:
        raise DumpFailed(path, f"record {record.offset}: {wrong}") from None
    if kind in TRANSACTION_MARKERS:
        return f" endTxnMarker: {kind.name} coordinatorEpoch: {message.coordinator_epoch}"
    return f" {_TITLES[kind]} {json_text(to_json(message, version))}"
