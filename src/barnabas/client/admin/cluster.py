"""The brokers of a cluster: DescribeCluster, UnregisterBroker, and ApiVersions of each broker."""

import asyncio
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from barnabas.base.values import value
from barnabas.client.admin.call import Call, Spoken, check
from barnabas.client.errors import ClientError, UnsupportedByBroker
from barnabas.client.metadata import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.acls import AclOperation, operations_of
from barnabas.protocol.messages.brokers import UnregisterBrokerRequest
from barnabas.protocol.messages.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)

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


async def describe(
    call: Call, *, endpoints: EndpointType, fenced: bool, operations: bool
) -> ClusterDescription:
    def make(spoken: Spoken) -> object:
        if endpoints != "brokers":
            spoken.needs(_ENDPOINT_TYPE_FROM, "controller endpoints")
        if fenced:
            spoken.needs(_FENCED_FROM, "fenced brokers")
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

    return await call.single("DESCRIBE_CLUSTER", attempt)


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

    def make(spoken: Spoken) -> object:
        if operations and spoken.version not in _METADATA_OPERATIONS:
            spoken.needs(_METADATA_OPERATIONS[0], "authorized operations of the cluster")
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

    return await call.single("API_VERSIONS", attempt)


async def unregister(call: Call, broker: int) -> None:
    async def attempt() -> None:
        answer = await call.ask(ApiKey.UNREGISTER_BROKER, lambda _: UnregisterBrokerRequest(broker_id=broker))
        check(answer.error_code, about=f"broker {broker}", message=answer.error_message)

    await call.single("UNREGISTER_BROKER", attempt)
