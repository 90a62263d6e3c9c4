"""A broker that is unregistered while it runs."""

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.brokers import UnregisterBrokerRequest
from barnabas.protocol.messages.transactions import InitProducerIdRequest
from barnabas.server.broker import Broker
from barnabas.sim.world import World
from support.stories import Client, told, until


@told()
async def test_an_unregistered_broker_registers_again_and_serves_its_logs(
    world: World, broker: Broker, client: Client
) -> None:
    await client.create("orders")
    assert await client.produce("orders", b"before") == 0
    epoch = broker.lifecycle.epoch if broker.lifecycle is not None else -1

    def has_leader() -> bool:
        return broker.services.image.topics["orders"].partitions[0].leader != -1

    for _ in range(2):
        await client.asked(UnregisterBrokerRequest(broker_id=broker.services.node_id), 0)
        await until(lambda: not has_leader())
        await until(has_leader)

    assert broker.lifecycle is not None
    assert broker.lifecycle.epoch > epoch
    assert await client.produce("orders", b"after") == 1
    assert await client.values("orders") == [b"before", b"after"]
    await client.create("late")
    assert await client.produce("late", b"v") == 0
    answer = await client.asked(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000), 4)
    assert answer.error_code == ErrorCode.NONE
