"""The cluster and its brokers: descriptions, API versions, metadata quorum, log directories, elections.

Log directories and API versions are requested from each broker, the rest from any of them.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.base.values import value
from barnabas.client.admin.call import Call, NegotiatedApi, Outcome, check, outcome_of
from barnabas.client.admin.leaders import by_topic
from barnabas.client.errors import ClientError, Refused, UnsupportedByBroker, refused
from barnabas.client.metadata import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.acls import AclOperation, operations_of
from barnabas.protocol.messages.brokers import UnregisterBrokerRequest
from barnabas.protocol.messages.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)
from barnabas.protocol.messages.log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from barnabas.protocol.messages.quorum import (
    DescribeQuorumPartitionData,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumTopicData,
    ReplicaState,
)
from barnabas.protocol.messages.replicas import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions

# Description, and API versions of each broker


EndpointType: TypeAlias = Literal["brokers", "controllers"]

_ENDPOINT_TYPES: Final[Mapping[str, int]] = {"brokers": 1, "controllers": 2}
_ENDPOINT_TYPE_FROM, _FENCED_FROM = 1, 2
_METADATA_OPERATIONS: Final = range(8, 11)


@value(kw_only=True)
class ClusterNode:
    id: int
    host: str
    port: int
    rack: str | None
    fenced: bool = False


@value(kw_only=True)
class ClusterDescription:
    """`operations` are the authorized operations, None if they were not requested.

    controller_id is -1 if unknown. A broker returns any live broker, because brokers forward requests.
    """

    cluster_id: str | None
    controller_id: int
    nodes: Mapping[int, ClusterNode]
    operations: frozenset[AclOperation] | None


@value(kw_only=True)
class BrokerVersions:
    """First and last supported version of each API of a broker, by key; or the error."""

    node: Node
    versions: Mapping[int, tuple[int, int]]
    error: ClientError | None = None


async def describe_cluster(
    call: Call, *, endpoints: EndpointType, fenced: bool, operations: bool
) -> ClusterDescription:
    def make(api: NegotiatedApi) -> object:
        if endpoints != "brokers":
            api.require(_ENDPOINT_TYPE_FROM, "controller endpoints")
        if fenced:
            api.require(_FENCED_FROM, "fenced brokers")
        return DescribeClusterRequest(
            include_cluster_authorized_operations=operations,
            endpoint_type=_ENDPOINT_TYPES[endpoints],
            include_fenced_brokers=fenced,
        )

    async def attempt() -> ClusterDescription:
        try:
            answer: DescribeClusterResponse = await call.ask(ApiKey.DESCRIBE_CLUSTER, make)
        except UnsupportedByBroker:
            if fenced or endpoints != "brokers":
                raise
            return await _from_metadata(call, operations)
        check(answer.error_code, about="the cluster", message=answer.error_message)
        return _described(answer)

    return await call.retry_single("DESCRIBE_CLUSTER", attempt)


def _described(answer: DescribeClusterResponse) -> ClusterDescription:
    return ClusterDescription(
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id,
        nodes={
            entry.broker_id: ClusterNode(
                id=entry.broker_id, host=entry.host, port=entry.port, rack=entry.rack, fenced=entry.is_fenced
            )
            for entry in sorted(answer.brokers, key=lambda entry: entry.broker_id)
        },
        operations=operations_of(answer.cluster_authorized_operations),
    )


async def _from_metadata(call: Call, operations: bool) -> ClusterDescription:
    """Describe the cluster with Metadata, for brokers without DescribeCluster (KIP-700)."""

    def make(api: NegotiatedApi) -> object:
        if operations and api.version not in _METADATA_OPERATIONS:
            api.require(_METADATA_OPERATIONS[0], "authorized operations of the cluster")
        return MetadataRequest(
            topics=[],
            include_cluster_authorized_operations=operations,
        )

    answer: MetadataResponse = await call.ask(ApiKey.METADATA, make)
    return ClusterDescription(
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id,
        nodes={
            entry.node_id: ClusterNode(id=entry.node_id, host=entry.host, port=entry.port, rack=entry.rack)
            for entry in sorted(answer.brokers, key=lambda entry: entry.node_id)
        },
        operations=operations_of(answer.cluster_authorized_operations),
    )


async def api_versions(call: Call) -> dict[int, BrokerVersions]:
    """Return the versions of every broker; for an unreachable one, the error after one attempt."""

    async def of(node: Node) -> BrokerVersions:
        try:
            connection = await call.connection(node.id)
        except ClientError as error:
            return BrokerVersions(node=node, versions={}, error=error)
        return BrokerVersions(node=node, versions=dict(connection.api_versions))

    async def attempt() -> dict[int, BrokerVersions]:
        nodes = (await call.cluster.refresh()).nodes
        found = await asyncio.gather(*(of(nodes[number]) for number in sorted(nodes)))
        return {each.node.id: each for each in found}

    return await call.retry_single("API_VERSIONS", attempt)


async def unregister_broker(call: Call, broker: int) -> None:
    async def attempt() -> None:
        answer = await call.ask(ApiKey.UNREGISTER_BROKER, lambda _: UnregisterBrokerRequest(broker_id=broker))
        check(answer.error_code, about=f"broker {broker}", message=answer.error_message)

    await call.retry_single("UNREGISTER_BROKER", attempt)


# The metadata quorum


_TOPIC: Final = "__cluster_metadata"
_PARTITION: Final = 0
_UNKNOWN: Final = -1


@value(kw_only=True)
class QuorumReplica:
    """A replica of the metadata log. Times are None if not returned."""

    id: int
    directory_id: Uuid | None
    log_end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


class QuorumEndpoint(NamedTuple):
    listener: str
    host: str
    port: int


@value(kw_only=True)
class QuorumDescription:
    """`nodes` has the listeners of the voters; empty from older brokers."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    nodes: Mapping[int, tuple[QuorumEndpoint, ...]]


async def describe_quorum(call: Call) -> QuorumDescription:
    asked = DescribeQuorumTopicData(
        topic_name=_TOPIC, partitions=[DescribeQuorumPartitionData(partition_index=_PARTITION)]
    )
    request = DescribeQuorumRequest(topics=[asked])

    async def attempt() -> QuorumDescription:
        answer: DescribeQuorumResponse = await call.ask(ApiKey.DESCRIBE_QUORUM, lambda _: request)
        check(answer.error_code, about="the quorum", message=answer.error_message)
        entry = _metadata_partition(answer)
        check(entry.error_code, about="the quorum", message=entry.error_message)
        return QuorumDescription(
            leader_id=entry.leader_id,
            leader_epoch=entry.leader_epoch,
            high_watermark=entry.high_watermark,
            voters=tuple(map(_replica, entry.current_voters)),
            observers=tuple(map(_replica, entry.observers)),
            nodes={
                node.node_id: tuple(QuorumEndpoint(at.name, at.host, at.port) for at in node.listeners)
                for node in answer.nodes
            },
        )

    return await call.retry_single("DESCRIBE_QUORUM", attempt)


def _metadata_partition(answer: DescribeQuorumResponse) -> DescribeQuorumResponsePartitionData:
    for topic in answer.topics:
        for entry in topic.partitions:
            if topic.topic_name == _TOPIC and entry.partition_index == _PARTITION:
                return entry
    why = f"the response has no entry for {_TOPIC}-{_PARTITION}"
    raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, about="the quorum", message=why)


def _replica(entry: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        id=entry.replica_id,
        directory_id=None if entry.replica_directory_id == ZERO_UUID else entry.replica_directory_id,
        log_end_offset=entry.log_end_offset,
        last_fetch_ms=_or_none(entry.last_fetch_timestamp),
        last_caught_up_ms=_or_none(entry.last_caught_up_timestamp),
    )


def _or_none(number: int) -> int | None:
    return None if number == _UNKNOWN else number


# Log directories


@value(kw_only=True)
class ReplicaLog:
    """One log. A future log is being moved here from another directory of the broker."""

    size_bytes: int
    offset_lag: int
    future: bool


@value(kw_only=True)
class LogDir:
    """One log directory, or its error if it is offline. Sizes are None if not returned."""

    path: str
    error: Refused | None
    total_bytes: int | None
    usable_bytes: int | None
    cordoned: bool
    replicas: Mapping[TopicPartition, ReplicaLog]


async def describe_log_dirs(
    call: Call, brokers: Iterable[int] | None, tps: Iterable[TopicPartition] | None
) -> dict[int, Outcome[dict[str, LogDir]]]:
    """Return log directories by broker and path. None: all brokers, all partitions."""
    topics = None
    if tps is not None:
        topics = [
            DescribableLogDirTopic(topic=topic, partitions=partitions) for topic, partitions in by_topic(tps)
        ]
    request = DescribeLogDirsRequest(topics=topics)

    async def ask(broker: int) -> dict[str, LogDir]:
        answer: DescribeLogDirsResponse = await call.ask(ApiKey.DESCRIBE_LOG_DIRS, lambda _: request, broker)
        check(answer.error_code, about=f"broker {broker}")
        return {entry.log_dir: _log_dir(entry) for entry in answer.results}

    return await call.ask_brokers("DESCRIBE_LOG_DIRS", ask, brokers)


def _log_dir(entry: DescribeLogDirsResult) -> LogDir:
    replicas = {
        TopicPartition(topic.name, row.partition_index): ReplicaLog(
            size_bytes=row.partition_size, offset_lag=row.offset_lag, future=row.is_future_key
        )
        for topic in entry.topics
        for row in topic.partitions
    }
    failed = entry.error_code != ErrorCode.NONE
    return LogDir(
        path=entry.log_dir,
        error=refused(entry.error_code, about=f"log directory {entry.log_dir}") if failed else None,
        total_bytes=None if entry.total_bytes == _UNKNOWN else entry.total_bytes,
        usable_bytes=None if entry.usable_bytes == _UNKNOWN else entry.usable_bytes,
        cordoned=entry.is_cordoned,
        replicas=replicas,
    )


# Leader elections


# The first replica, or any live replica although records may be lost.
ElectionType: TypeAlias = Literal["preferred", "unclean"]

_PREFERRED, _UNCLEAN = 0, 1
_TYPES_FROM: Final = 1


async def elect_leaders(
    call: Call, election: ElectionType, tps: Iterable[TopicPartition] | None
) -> dict[TopicPartition, Outcome[bool]]:
    """Return True where a leader was elected, False where no election was needed."""
    wanted = None
    if tps is not None:
        wanted = [TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in by_topic(tps)]

    def make(api: NegotiatedApi) -> object:
        if election == "unclean":
            api.require(_TYPES_FROM, "unclean elections")
        return ElectLeadersRequest(
            election_type=_UNCLEAN if election == "unclean" else _PREFERRED,
            topic_partitions=wanted,
            timeout_ms=call.request_timeout_ms,
        )

    async def attempt() -> dict[TopicPartition, Outcome[bool]]:
        answer: ElectLeadersResponse = await call.ask(ApiKey.ELECT_LEADERS, make)
        check(answer.error_code, about="the election")
        found: dict[TopicPartition, Outcome[bool]] = {}
        for topic in answer.replica_election_results:
            for entry in topic.partition_result:
                tp = TopicPartition(topic.topic, entry.partition_id)
                if entry.error_code == ErrorCode.ELECTION_NOT_NEEDED:
                    found[tp] = False
                else:
                    found[tp] = outcome_of(entry.error_code, True, about=str(tp), message=entry.error_message)
        return found

    return await call.retry_single("ELECT_LEADERS", attempt)
