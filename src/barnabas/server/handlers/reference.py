"""The page docs/reference/apis.md: supported APIs and versions, and why the others are not.

python -m barnabas.server.handlers.reference > docs/reference/apis.md        # after a change of the table
"""

import sys
from collections.abc import Iterator
from typing import Final

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.server.handlers.table import APIS
from barnabas.server.requests.api import Api

# Notes for users on APIs that are supported in part.
NOTES: Final = {
    ApiKey.PRODUCE: "advertised from version 0, as Kafka does, for librdkafka",
    ApiKey.FETCH: "clients only; there are no followers yet",
    ApiKey.INIT_PRODUCER_ID: "version 6 is experimental, with unstable.api.versions.enable",
    ApiKey.FIND_COORDINATOR: "groups and transactions only; share groups are not built yet",
}

_SECURITY: Final = "authentication and ACLs are not built yet"
_SHARE: Final = "share groups are not built yet"
_NODES: Final = "only between nodes; a cluster has one node so far"
_VOTERS: Final = "the voters of the quorum are static"

NOT_YET: Final = {
    ApiKey.SASL_HANDSHAKE: _SECURITY,
    ApiKey.DESCRIBE_ACLS: _SECURITY,
    ApiKey.CREATE_ACLS: _SECURITY,
    ApiKey.DELETE_ACLS: _SECURITY,
    ApiKey.ALTER_REPLICA_LOG_DIRS: "replicas cannot be moved between directories yet",
    ApiKey.SASL_AUTHENTICATE: _SECURITY,
    ApiKey.CREATE_DELEGATION_TOKEN: _SECURITY,
    ApiKey.RENEW_DELEGATION_TOKEN: _SECURITY,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _SECURITY,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _SECURITY,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "replicas cannot be moved between brokers yet",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "replicas cannot be moved between brokers yet",
    ApiKey.DESCRIBE_CLIENT_QUOTAS: "quotas are not built yet",
    ApiKey.ALTER_CLIENT_QUOTAS: "quotas are not built yet",
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _SECURITY,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _SECURITY,
    ApiKey.VOTE: _NODES,
    ApiKey.BEGIN_QUORUM_EPOCH: _NODES,
    ApiKey.END_QUORUM_EPOCH: _NODES,
    ApiKey.ALTER_PARTITION: _NODES,
    ApiKey.ENVELOPE: _NODES,
    ApiKey.FETCH_SNAPSHOT: _NODES,
    ApiKey.BROKER_REGISTRATION: _NODES,
    ApiKey.BROKER_HEARTBEAT: _NODES,
    ApiKey.ALLOCATE_PRODUCER_IDS: _NODES,
    ApiKey.CONTROLLER_REGISTRATION: _NODES,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: "client metrics are not collected yet",
    ApiKey.PUSH_TELEMETRY: "client metrics are not collected yet",
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _NODES,
    ApiKey.SHARE_GROUP_HEARTBEAT: _SHARE,
    ApiKey.SHARE_GROUP_DESCRIBE: _SHARE,
    ApiKey.SHARE_FETCH: _SHARE,
    ApiKey.SHARE_ACKNOWLEDGE: _SHARE,
    ApiKey.ADD_RAFT_VOTER: _VOTERS,
    ApiKey.REMOVE_RAFT_VOTER: _VOTERS,
    ApiKey.UPDATE_RAFT_VOTER: _VOTERS,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _SHARE,
    ApiKey.READ_SHARE_GROUP_STATE: _SHARE,
    ApiKey.WRITE_SHARE_GROUP_STATE: _SHARE,
    ApiKey.DELETE_SHARE_GROUP_STATE: _SHARE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _SHARE,
    ApiKey.STREAMS_GROUP_HEARTBEAT: "streams groups are not built yet",
    ApiKey.STREAMS_GROUP_DESCRIBE: "streams groups are not built yet",
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _SHARE,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _SHARE,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _SHARE,
}

_OPENING: Final = """\
# APIs and versions

The APIs and versions that a Barnabas broker supports, compared with Apache Kafka 4.3. A broker advertises
exactly what it supports, so a client that needs more learns it from ApiVersions instead of failing later.
Generated from the API table in the code; a test keeps it current.

Barnabas supports {spoken} of {all} APIs.

| key | API | Barnabas | Kafka 4.3 | |
| ---: | --- | --- | --- | --- |
"""


def page() -> str:
    spoken = {row.key: row for row in APIS}
    opening = _OPENING.format(spoken=len(spoken), all=len(ApiKey))
    return opening + "".join(f"{line}\n" for line in _lines(spoken))


def _lines(spoken: dict[ApiKey, Api]) -> Iterator[str]:
    for key in ApiKey:
        theirs = api(key)
        name = theirs.request.__name__.removesuffix("Request")
        row = spoken.get(key)
        ours = "-" if row is None else _range(row.versions)
        why = NOT_YET[key] if row is None else NOTES.get(key, "")
        yield f"| {key.value} | {name} | {ours} | {theirs.versions} | {why} |".replace("|  |", "| |")


def _range(versions: range) -> str:
    first, last = versions.start, versions.stop - 1
    return f"{first}" if first == last else f"{first}-{last}"


if __name__ == "__main__":
    sys.stdout.write(page())
