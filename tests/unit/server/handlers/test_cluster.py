"""DescribeCluster and UnregisterBroker."""

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.brokers import UnregisterBrokerRequest
from barnabas.protocol.messages.cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.server.handlers.cluster import APIS
from support.decided import CLUSTER_ID, Decided, one_broker, row
from support.log.managers import on_a_loop

DESCRIBE = row(APIS, ApiKey.DESCRIBE_CLUSTER)
UNREGISTER = row(APIS, ApiKey.UNREGISTER_BROKER)
EVERYTHING = 8096
CONTROLLERS = 2


@pytest.mark.parametrize("version", DESCRIBE.versions)
def test_brokers_have_the_addresses_of_the_clients_listener(version: int) -> None:
    broker = Decided(listener="INSIDE")
    broker.register(2, {"INSIDE": ("10.0.0.2", 9192)}, rack="b")
    broker.register(1, {"INSIDE": ("10.0.0.1", 9192), "PLAINTEXT": ("one.example", 9092)})
    broker.register(3, {"INSIDE": ("10.0.0.3", 9192)}, fenced=True)

    answer = broker.ask(DESCRIBE, DescribeClusterRequest(), version)

    assert answer.cluster_id == CLUSTER_ID
    assert answer.controller_id in (1, 2)
    assert answer.brokers == [
        DescribeClusterBroker(broker_id=1, host="10.0.0.1", port=9192, rack=None),
        DescribeClusterBroker(broker_id=2, host="10.0.0.2", port=9192, rack="b"),
    ]
    assert answer.cluster_authorized_operations == -2147483648
    assert answer.error_message is None


def test_fenced_brokers_are_included_on_request() -> None:
    broker = one_broker()
    broker.register(2, fenced=True)

    answer = broker.ask(DESCRIBE, DescribeClusterRequest(include_fenced_brokers=True), 2)

    assert [(one.broker_id, one.is_fenced) for one in answer.brokers] == [(1, False), (2, True)]
    assert answer.controller_id == 1


def test_a_controller_without_the_clients_listener_is_omitted() -> None:
    broker = Decided(listener="INSIDE")
    broker.register(1)

    answer = broker.ask(DESCRIBE, DescribeClusterRequest(), 2)

    assert (answer.controller_id, answer.brokers) == (-1, [])


def test_operations_of_the_cluster() -> None:
    answer = one_broker().ask(DESCRIBE, DescribeClusterRequest(include_cluster_authorized_operations=True), 0)

    assert answer.cluster_authorized_operations == EVERYTHING


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("endpoint_type", "code", "message"),
    [
        (
            CONTROLLERS,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, "
            "but we wanted an endpoint of type CONTROLLER",
        ),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 0"),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 3"),
    ],
)
def test_a_broker_listener_describes_only_brokers(
    version: int, endpoint_type: int, code: int, message: str
) -> None:
    answer = one_broker().ask(DESCRIBE, DescribeClusterRequest(endpoint_type=endpoint_type), version)

    assert answer == DescribeClusterResponse(error_code=code, error_message=message)


@on_a_loop
async def test_a_broker_is_unregistered() -> None:
    broker = one_broker()
    broker.register(2)

    answer = await broker.ask_and_wait(UNREGISTER, UnregisterBrokerRequest(broker_id=2), 0)

    assert answer.error_code == ErrorCode.NONE
    assert list(broker.image.brokers) == [1]


@on_a_loop
async def test_a_broker_cannot_be_unregistered_twice() -> None:
    answer = await one_broker().ask_and_wait(UNREGISTER, UnregisterBrokerRequest(broker_id=7), 0)

    assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
