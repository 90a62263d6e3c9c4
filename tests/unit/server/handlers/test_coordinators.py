"""FindCoordinator: who coordinates a group, in every version. How the topic is made is a story of its own."""

import asyncio
from typing import Any

import pytest

from barnabas.base.ids import Uuid
from barnabas.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
from barnabas.protocol.stored.cluster_nodes import BrokerEndpoint, RegisterBrokerRecord
from barnabas.server.coordination.groups import OFFSETS_TOPIC
from barnabas.server.handlers.coordinators import API
from support.hosted import Hosted

OFFSETS = TopicImage(
    OFFSETS_TOPIC,
    Uuid(bytes(16)),
    tuple(
        PartitionImage(
            replicas=(leader,),
            directories=(),
            isr=(leader,),
            leader=leader,
            leader_epoch=0,
            partition_epoch=0,
        )
        for leader in (1, 2, -1)
    ),
)
# By Java's hash of the text, modulo 3.
ON_1, ON_2, ON_NOBODY = "c", "a", "b"


def broker(number: int, *, fenced: bool = False, listener: str = "PLAINTEXT") -> BrokerImage:
    endpoint = BrokerEndpoint(name=listener, host=f"host{number}", port=9000 + number, security_protocol=0)
    return BrokerImage(
        id=number,
        epoch=1,
        fenced=fenced,
        in_controlled_shutdown=False,
        registration=RegisterBrokerRecord(broker_id=number, end_points=[endpoint]),
    )


def ask(version: int, *brokers: BrokerImage, **fields: Any) -> Any:
    image = MetadataImage(
        topics={OFFSETS_TOPIC: OFFSETS}, brokers={one.id: one for one in brokers or (broker(1), broker(2))}
    )
    return asyncio.run(Hosted(image).ask(API, FindCoordinatorRequest(**fields), version))


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_one_group_is_coordinated_by_the_leader_of_its_partition(version: int) -> None:
    answer = ask(version, key=ON_2)

    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (0, 2, "host2", 9002)


@pytest.mark.parametrize("version", [4, 5, 6])
def test_several_groups_each_have_a_coordinator_or_an_error(version: int) -> None:
    answer = ask(version, coordinator_keys=[ON_1, ON_2, ON_NOBODY])

    assert [(one.key, one.error_code, one.node_id, one.port) for one in answer.coordinators] == [
        (ON_1, ErrorCode.NONE, 1, 9001),
        (ON_2, ErrorCode.NONE, 2, 9002),
        (ON_NOBODY, ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, -1),
    ]


@pytest.mark.parametrize(
    "leader", [broker(1, fenced=True), broker(1, listener="INTERNAL")], ids=["fenced", "other listener"]
)
def test_a_leader_without_the_clients_listener_is_not_available(leader: BrokerImage) -> None:
    answer = ask(3, leader, key=ON_1)

    assert (answer.error_code, answer.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


@pytest.mark.parametrize("kind", [1, 2])
def test_transactions_and_share_groups_have_no_coordinator_yet(kind: int) -> None:
    answer = ask(6, key_type=kind, coordinator_keys=["a"])

    assert [one.error_code for one in answer.coordinators] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


@pytest.mark.parametrize(("version", "kind"), [(5, 2), (6, 3), (4, -1)])
def test_an_unknown_kind_is_refused(version: int, kind: int) -> None:
    answer = ask(version, key_type=kind, coordinator_keys=["a"])

    assert [one.error_code for one in answer.coordinators] == [ErrorCode.INVALID_REQUEST]
