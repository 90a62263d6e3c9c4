"""Describe control records: transaction markers, leader changes, snapshot headers and footers.

Kafka's tool decodes every LeaderChange as version 0 and fails on version 1, which has directory ids. This one
decodes both.
"""

from typing import Final

from barnabas.base.errors import Malformed
from barnabas.cli.dump.records import Shown
from barnabas.cli.dump.source import DumpFailed
from barnabas.protocol.schema.json import json_text, to_json
from barnabas.protocol.stored.framing import decode_control
from barnabas.records.control import TRANSACTION_MARKERS, ControlType, read_control_type

# Kafka prints a colon after the first title only.
_TITLES: Final = {
    ControlType.LEADER_CHANGE: "LeaderChange:",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlType.KRAFT_VERSION: "KRaftVersion",
    ControlType.KRAFT_VOTERS: "KRaftVoters",
}


def describe_control(path: str, record: Shown) -> str:
    """Return the part of the record's line about its control type."""
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
