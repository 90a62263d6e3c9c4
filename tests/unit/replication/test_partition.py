"""acks=all is refused unless the ISR is large enough."""

import asyncio
from dataclasses import replace

import pytest

from barnabas.replication.errors import NotEnoughReplicas
from barnabas.replication.partition import Partition
from support.hosted import ME, Hosted, image_of, partition_image

pytestmark = pytest.mark.kernel


def partition(*isr: int, replicas: tuple[int, ...], **configs: str) -> Partition:
    hosted = replace(partition_image(replicas=replicas), isr=isr)
    image = image_of({"orders": [hosted]}, {"orders": configs})
    return asyncio.run(Hosted(image).open()).partition("orders")


def test_alone_in_the_isr_is_enough_if_the_topic_says_so() -> None:
    partition(ME, replicas=(ME, 2)).need_in_sync()


def test_fewer_in_sync_than_the_topic_asks_for_are_not_enough() -> None:
    with pytest.raises(NotEnoughReplicas):
        partition(ME, replicas=(ME, 2), **{"min.insync.replicas": "2"}).need_in_sync()


def test_a_topic_cannot_ask_for_more_than_it_has() -> None:
    partition(ME, replicas=(ME,), **{"min.insync.replicas": "2"}).need_in_sync()


def test_a_replica_that_does_not_fetch_from_us_keeps_nothing() -> None:
    with pytest.raises(NotEnoughReplicas):
        partition(ME, 2, replicas=(ME, 2)).need_in_sync()
