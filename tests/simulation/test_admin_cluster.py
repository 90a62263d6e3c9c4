"""The admin client and a broker in the simulated world: what the cluster says of itself."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin import (
    AclOperation,
    ClusterNode,
    FeatureUpdate,
    LevelRange,
    PartlyRefused,
    UpgradeType,
)
from barnabas.client.errors import Refused
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.sim.world import World
from support.brokers import CLUSTER_ID, PORT
from support.our_client.admin_worlds import administrated
from support.our_client.peers import in_world

ORDERS_0, NOPE_0 = TopicPartition("orders", 0), TopicPartition("nope", 0)


@in_world
async def test_describe_cluster_returns_id_nodes_and_authorized_operations(world: World) -> None:
    async with administrated(world, {"broker.rack": "r1"}) as admin:
        plain = await admin.describe_cluster()
        full = await admin.describe_cluster(fenced=True, operations=True)

    node = ClusterNode(id=1, host="127.0.0.1", port=PORT, rack="r1")
    assert (plain.cluster_id, plain.controller_id, plain.nodes) == (CLUSTER_ID, 1, {1: node})
    assert plain.operations is None
    assert full.nodes == {1: node}
    assert full.operations is not None
    assert AclOperation.CLUSTER_ACTION in full.operations


@in_world
async def test_a_broker_does_not_describe_controllers(world: World) -> None:
    async with administrated(world) as admin:
        with pytest.raises(Refused) as refused:
            await admin.describe_cluster(endpoints="controllers")

    assert refused.value.code is ErrorCode.MISMATCHED_ENDPOINT_TYPE


@in_world
async def test_api_versions_of_every_broker_are_returned(world: World) -> None:
    async with administrated(world) as admin:
        found = await admin.api_versions()

    assert list(found) == [1]
    assert found[1].versions[ApiKey.METADATA] == (0, 13)
    assert found[1].node.port == PORT
    assert found[1].error is None


@in_world
async def test_features_are_described_and_updated(world: World) -> None:
    async with administrated(world) as admin:
        before = await admin.describe_features()
        await admin.update_features(
            {"group.version": FeatureUpdate(level=0, type=UpgradeType.SAFE_DOWNGRADE)}, validate_only=True
        )
        validated = await admin.describe_features()
        await admin.update_features(
            {"group.version": FeatureUpdate(level=0, type=UpgradeType.SAFE_DOWNGRADE)}
        )
        after = await admin.describe_features(broker=1)
        with pytest.raises(Refused) as refused:
            await admin.update_features({"metadata.version": FeatureUpdate(level=99)})

    assert before.supported["group.version"] == LevelRange(0, 1)
    assert before.finalized["group.version"] == LevelRange(1, 1)
    assert validated.finalized == before.finalized
    assert "group.version" not in after.finalized
    assert before.epoch is not None
    assert after.epoch is not None
    assert after.epoch > before.epoch
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION


@in_world
async def test_the_quorum_is_described(world: World) -> None:
    async with administrated(world) as admin:
        found = await admin.describe_quorum()

    assert (found.leader_id, found.leader_epoch) == (1, 1)
    assert [each.id for each in found.voters] == [1]
    assert found.observers == ()
    assert found.voters[0].log_end_offset >= found.high_watermark > 0
    assert found.nodes[1][0].listener == "CONTROLLER"


@in_world
async def test_an_election_that_is_not_needed_is_no_error(world: World) -> None:
    async with administrated(world) as admin:
        await admin.create_topic("orders")

        assert await admin.elect_leaders("preferred") == {}
        assert await admin.elect_leaders("preferred", [ORDERS_0]) == {ORDERS_0: False}
        assert await admin.elect_leaders("unclean", [("orders", 0)]) == {ORDERS_0: False}
        with pytest.raises(PartlyRefused) as refused:
            await admin.elect_leaders("preferred", [ORDERS_0, NOPE_0])

    assert refused.value.refused["nope-0"].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refused.value.done == {ORDERS_0: False}


@in_world
async def test_an_unknown_broker_cannot_be_unregistered(world: World) -> None:
    async with administrated(world) as admin:
        with pytest.raises(Refused) as refused:
            await admin.unregister_broker(55)

    assert refused.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED
