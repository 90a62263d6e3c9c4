"""A partition that a coordinator leads notifies the host of its shard when it changes."""

import asyncio

import pytest

from barnabas.records.header import Codec
from barnabas.server.coordination.hosted_partition import HostedPartition
from support.hosted import Hosted, one_topic, partition_image

pytestmark = pytest.mark.kernel


def hosted_of(broker: Hosted) -> HostedPartition:
    return HostedPartition(
        broker.partition("orders"), logs=broker.logs, executor=broker.executor, codec=Codec.NONE
    )


def test_the_host_is_notified_of_changes_until_the_end() -> None:
    async def story() -> None:
        broker = await one_topic()
        partition = broker.partition("orders")
        hosted = hosted_of(broker)
        changes: list[int] = []
        partition.changed()
        hosted.on_committed = lambda: changes.append(hosted.committed_offset)

        partition.changed()
        hosted.end()
        partition.changed()

        assert changes == [0]
        assert not partition.waiters

    asyncio.run(story())


def test_a_new_leader_epoch_ends_it() -> None:
    async def story() -> None:
        broker = await one_topic()
        partition = broker.partition("orders")
        hosted = hosted_of(broker)
        assert hosted.is_still(partition)

        partition.take(partition_image(epoch=1))

        assert not hosted.is_still(partition)
        assert not hosted.is_still(None)

    asyncio.run(story())
