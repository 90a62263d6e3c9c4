"""Values that mean something to a broker under fuzzing: names that exist or not, ids that it gave, settings.

Mutations pick them by the name of the field, and most often one of the first of a list, which a broker
accepts. Ids that only the broker knows are learned from its responses, with the group or transaction that
they belong to. Nothing here names a topic that well-behaved clients use.
"""

import random
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request

TOPICS: Final = tuple(f"fuzz-{number}" for number in range(6))
GROUPS: Final = ("g-0", "g-1", "g-2", "c-0", "c-1", "c-2")
TRANSACTIONS: Final = ("x-0", "x-1", "x-2")
_LEARNED_MAX: Final = 64
_SESSIONS_MAX: Final = 8
# How often words that belong together are put together.
_LINKED: Final = 0.7

_TOPIC_NAMES: Final = (
    *TOPICS * 3,
    *("missing", "new-0", "new-1", "__consumer_offsets", "__transaction_state", "__cluster_metadata"),
    *("", ".", "..", "a" * 249, "a" * 250, "b@d", "fuzz_0", "fuzz.0", "命令", "\0"),
)
_GROUP_NAMES: Final = (*GROUPS * 2, "missing", "", "a" * 300, "命令", "\0")
_TRANSACTION_NAMES: Final = (*TRANSACTIONS * 3, None, "missing", "", "a" * 300)
_SETTINGS: Final = (
    *("retention.ms", "retention.bytes", "cleanup.policy", "max.message.bytes", "segment.bytes"),
    *("segment.ms", "min.insync.replicas", "compression.type", "message.timestamp.type", "preallocate"),
    *("message.timestamp.before.max.ms", "flush.messages", "index.interval.bytes", "delete.retention.ms"),
    *("unclean.leader.election.enable", "follower.replication.throttled.replicas", "no.such.setting"),
    *("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", "transaction.version", ""),
)
_SETTING_VALUES: Final = (
    *("1048576", "1000", "compact", "delete", "true", "zstd", "10000", "compact,delete", "-1", "1", "0"),
    *("9223372036854775807", "9" * 30, "false", "", None, "delete,", "gzip", "producer", "LogAppendTime"),
    *("1.5", "x"),
)
_PARTITIONS: Final = (0, 0, 1, 2, 3, 1, 0, -1, 50, 2**31 - 1, -(2**31))
_EPOCHS: Final = (-1, -1, 0, 0, 1, 2, 3, 1000, -2, 2**31 - 1, -(2**31))
_OFFSETS: Final = (0, 0, 1, 2, 3, 10, 100, -1, -2, -3, -4, -5, -6, 10_000, 2**63 - 1, -(2**63), 2**31)
_TIMES_MS: Final = (10_000, 10_000, 6000, 1000, 100, 1, 0, -1, 2**31 - 1, -(2**31))
_BYTES_MAX: Final = (1 << 20, 1 << 20, 10_000, 1, 100, 0, -1, 2**31 - 1, -(2**31))
_MEMBERS: Final = ("", "m-0", "AAAAAAAAAAAAAAAAAAAAAA", "m-1", "a" * 300)
_PRODUCERS: Final = (-1, 0, 1, 2, 3, 1000, 1001, 1002, 2**63 - 1)
_PRODUCER_EPOCHS: Final = (-1, 0, 0, 0, 1, 2, 32_766, 32_767, -2)

# By the name of the field; what a request does with a field called "name" depends on the API.
_COMMON: Final[dict[str, tuple[Any, ...]]] = {
    **dict.fromkeys(("topic", "topic_name", "topic_names", "subscribed_topic_names"), _TOPIC_NAMES),
    **dict.fromkeys(("group_id", "group_ids", "groups_names"), _GROUP_NAMES),
    **dict.fromkeys(
        ("transactional_id", "transactional_ids", "v3_and_below_transactional_id"), _TRANSACTION_NAMES
    ),
    **dict.fromkeys(("key", "coordinator_keys"), (*GROUPS, *TRANSACTIONS, *_GROUP_NAMES)),
    **dict.fromkeys(
        ("partition", "partition_index", "index", "partitions", "partition_indexes", "broker_ids"),
        _PARTITIONS,
    ),
    **dict.fromkeys(
        (
            *("committed_leader_epoch", "current_leader_epoch", "last_fetched_epoch", "leader_epoch"),
            *("generation_id", "generation_id_or_member_epoch", "session_epoch"),
            *("coordinator_epoch", "broker_id"),
        ),
        _EPOCHS,
    ),
    **dict.fromkeys(
        ("committed_offset", "fetch_offset", "offset", "log_start_offset", "high_watermark"), _OFFSETS
    ),
    **dict.fromkeys(
        ("max_bytes", "min_bytes", "partition_max_bytes", "response_partition_limit"), _BYTES_MAX
    ),
    **dict.fromkeys(("timeout_ms", "transaction_timeout_ms"), _TIMES_MS),
    "session_timeout_ms": (*(10_000, 6000) * 4, 1000, 0, -1, 2**31 - 1, -(2**31)),
    **dict.fromkeys(("group_instance_id", "instance_id"), (None, None, "i-0", "i-1", "")),
    **dict.fromkeys(("producer_id", "v3_and_below_producer_id", "producer_id_filters"), _PRODUCERS),
    **dict.fromkeys(("producer_epoch", "v3_and_below_producer_epoch"), _PRODUCER_EPOCHS),
    "timestamp": (-1, -2, -3, 0, 1_767_225_600_000, -4, -5, -6, 2**63 - 1, -(2**63)),
    "rebalance_timeout_ms": (100, 1000, 10_000, -1, 0, 2**31 - 1, -(2**31)),
    "member_epoch": (0, 0, -1, 1, 2, -2, 1000),
    "max_wait_ms": (0, 0, 1, 5),
    "replica_id": (-1, -1, -1, -1, -1, -1, 0, 1, -2),
    "isolation_level": (0, 0, 1, 1, 1, 0, 2),
    "acks": (-1, -1, -1, -1, 1, 1, 0, 2),
    "election_type": (0, 1, 2),
    "endpoint_type": (1, 1, 2, 0),
    "key_type": (0, 1, 0, 1, 2),
    "config_operation": (0, 1, 2, 3, 4),
    "transaction_version": (0, 1, 2, 3),
    "upgrade_type": (1, 2, 3, 0),
    "member_id": _MEMBERS,
    "resource_name": (*_TOPIC_NAMES, *GROUPS, "1", "2", "", "x", "-1"),
    "resource_type": (2, 2, 2, 2, 4, 8, 16, 32, 0, 1, 127, -128),
    "num_partitions": (1, 1, 2, 3, -1, 0, -2),
    "count": (3, 4, 5, 6, 2, 1, 0, -1),
    "replication_factor": (1, 1, 1, -1, 0, 2, 32_767),
    "value": _SETTING_VALUES,
    "configuration_keys": _SETTINGS,
    "feature": ("metadata.version", "group.version", "transaction.version", "kraft.version", "", "x"),
    "max_version_level": (1, 2, 30, 25, 0, 7, -1, 32_767),
    "subscribed_topic_regex": (None, "fuzz-.*", ".*", "", "(fuzz|new)-[0-9]", "[", "(a*)*b", "a{1000}"),
    "server_assignor": (None, "uniform", "range", "x", ""),
    "protocol_type": ("consumer", "consumer", "consumer", "connect", "", None),
    "protocol_name": ("range", "roundrobin", "cooperative-sticky", "", None),
    "transactional_id_pattern": (None, "", "x-.*", "[", "(a*)*b"),
    "states_filter": ("Empty", "Stable", "Dead", "x", ""),
    "state_filters": ("Ongoing", "Empty", "x", ""),
    "types_filter": ("classic", "consumer", "share", "x", ""),
}
_NAMES: Final[dict[int, tuple[Any, ...]]] = {
    ApiKey.JOIN_GROUP: ("range", "roundrobin", "cooperative-sticky", ""),
    ApiKey.ALTER_CONFIGS: _SETTINGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _SETTINGS,
    # Of topics, and of their settings.
    ApiKey.CREATE_TOPICS: ("new-0", "new-1", *_SETTINGS, *_TOPIC_NAMES),
}
# The topics of all the others are to stay for a while.
_DELETED: Final = ("new-0", "new-1", "missing", *_TOPIC_NAMES[len(TOPICS) * 3 :])
_OF_API: Final[dict[tuple[int, str], tuple[Any, ...]]] = {
    **{(key, "name"): names for key, names in _NAMES.items()},
    (ApiKey.DESCRIBE_GROUPS, "groups"): _GROUP_NAMES,
    # A classic group is rarely one of the new protocol.
    (ApiKey.JOIN_GROUP, "group_id"): (*("g-0", "g-1", "g-2") * 3, *_GROUP_NAMES),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, "group_id"): (*("c-0", "c-1", "c-2") * 3, *_GROUP_NAMES),
    (ApiKey.DELETE_TOPICS, "name"): _DELETED,
    (ApiKey.DELETE_TOPICS, "topic_names"): _DELETED,
    (ApiKey.DELETE_TOPICS, "topic_id"): (ZERO_UUID, ZERO_UUID, Uuid(b"no such topic id")),
}
_EPOCH_FIELDS: Final = ("generation_id", "generation_id_or_member_epoch", "member_epoch")


class Words:
    """The vocabulary of one run."""

    def __init__(self) -> None:
        # The ids of TOPICS, as far as they exist, by name.
        self.topic_ids: dict[str, Uuid] = {}
        # The latest member of each group, with its epoch, and the producer of each transaction.
        self.members: dict[str, tuple[str, int]] = {}
        self.producers: dict[str, tuple[int, int]] = {}
        self._sessions: deque[int] = deque([0, 0, 0, 0], maxlen=_SESSIONS_MAX)

    def choose(self, rng: random.Random, key: int, field: str) -> tuple[Any] | None:
        """A value for such a field, in a tuple; None if nothing is known about the field."""
        known = self._known(key, field)
        if known is None:
            return None
        return (known[int(rng.random() ** 2.5 * len(known))],)

    def _known(self, key: int, field: str) -> Sequence[Any] | None:
        of_api = _OF_API.get((key, field))
        if of_api is not None:
            return of_api
        if field == "name":
            return _TOPIC_NAMES
        if field == "topic_id":
            return (*self.topic_ids.values(), ZERO_UUID, Uuid(b"no such topic id"))
        if field == "session_id":
            return self._sessions
        return _COMMON.get(field)

    def link(self, rng: random.Random, body: Any) -> None:
        """Give a request the member of its group, and the producer of its transaction."""
        for one in (body, *_structs(body, "groups"), *_structs(body, "transactions")):
            group = getattr(one, "group_id", None)
            if group in self.members and rng.random() < _LINKED:
                member, epoch = self.members[group]
                _put(one, "member_id", member)
                for name in _EPOCH_FIELDS:
                    _put(one, name, epoch)
                for leaving in _structs(body, "members"):
                    _put(leaving, "member_id", member)
            for before in ("", "v3_and_below_"):
                transaction = getattr(one, f"{before}transactional_id", None)
                if transaction in self.producers and rng.random() < _LINKED:
                    _put(one, f"{before}producer_id", self.producers[transaction][0])
                    _put(one, f"{before}producer_epoch", self.producers[transaction][1])

    def learn(self, request: Request, answer: Any) -> None:
        """Keep the ids of a response."""
        body = request.body
        match request.api.key:
            case ApiKey.JOIN_GROUP if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.members.pop(body.group_id, None)
            case ApiKey.JOIN_GROUP if answer.member_id and len(self.members) < _LEARNED_MAX:
                self.members[body.group_id] = answer.member_id, answer.generation_id
            case ApiKey.CONSUMER_GROUP_HEARTBEAT if not answer.error_code:
                if len(self.members) < _LEARNED_MAX:
                    self.members[body.group_id] = answer.member_id or body.member_id, answer.member_epoch
            case ApiKey.INIT_PRODUCER_ID if not answer.error_code and len(self.producers) < _LEARNED_MAX:
                self.producers[body.transactional_id or ""] = answer.producer_id, answer.producer_epoch
            case ApiKey.FETCH if answer.session_id:
                self._sessions.append(answer.session_id)


LEARNED_FROM: Final = frozenset(
    {ApiKey.JOIN_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.INIT_PRODUCER_ID, ApiKey.FETCH}
)


def _structs(body: Any, name: str) -> list[Any]:
    """The items of a list of a request, if they are structs."""
    items = getattr(body, name, None) or []
    return [one for one in items if hasattr(type(one), "__schema__")]


def _put(owner: Any, name: str, value: Any) -> None:
    if hasattr(owner, name):
        try:
            setattr(owner, name, value)
        except (TypeError, OverflowError):
            # The class of a compiled message takes only what its field can hold.
            return
