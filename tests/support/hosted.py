"""Partitions of one broker as handlers see them: real logs on a simulated disk, and an image that names them.

There is no quorum and no network here. A test says which topics there are, asks through the wire's own bytes,
and looks at the answer.
"""

import inspect
from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Any

from barnabas.base.checksum import InlineChecksums
from barnabas.base.executor import Executor, InlineExecutor
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.base.tasks import Tasks
from barnabas.metadata.image import TOPIC_RESOURCE, ConfigResource, MetadataImage, PartitionImage, TopicImage
from barnabas.protocol.exchange import decode_request, decode_response, encode_request, response_parts
from barnabas.protocol.messages.transactions import AllocateProducerIdsRequest
from barnabas.replication.partition import Partition
from barnabas.replication.replicas import Replicas
from barnabas.server.coordination.groups import GroupCoordinator
from barnabas.server.coordination.internal_topic import InternalTopic, offsets_topic, transaction_topic
from barnabas.server.coordination.producer_ids import ProducerIds
from barnabas.server.coordination.transactions import TransactionCoordinator
from barnabas.server.fetch.sessions import FetchSessions
from barnabas.server.requests.api import Api, Context
from barnabas.server.services import Services
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.dynamic import DynamicSettings
from barnabas.sim.disk import SimDisk
from barnabas.storage.config import LogConfig
from barnabas.storage.log import Log
from barnabas.storage.manager import LogManager
from support.clocks import ManualClock
from support.log.managers import A, B, manager_on, new_disk

ME = 1
_FRAME_LENGTH = 4


def partition_image(*, leader: int = ME, epoch: int = 0, replicas: tuple[int, ...] = (ME,)) -> PartitionImage:
    return PartitionImage(
        replicas=replicas, directories=(), isr=replicas, leader=leader, leader_epoch=epoch, partition_epoch=0
    )


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode().ljust(16, b".")[:16])


def image_of(
    topics: Mapping[str, list[PartitionImage]], configs: Mapping[str, Mapping[str, str]] | None = None
) -> MetadataImage:
    made = {name: TopicImage(name, topic_id(name), tuple(parts)) for name, parts in topics.items()}
    return MetadataImage(
        offset=10,
        topics=made,
        topics_by_id={topic.id: topic for topic in made.values()},
        configs={ConfigResource(TOPIC_RESOURCE, name): values for name, values in (configs or {}).items()},
    )


class FixedController:
    """Stands for the way to the controller: what it answers to everything."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.asked: list[object] = []

    async def call(self, request: object) -> object:
        self.asked.append(request)
        return self.answer


class Hosted:
    """A broker's partitions. open() makes or loads the logs."""

    def __init__(
        self,
        image: MetadataImage,
        *,
        disk: SimDisk | None = None,
        executor: Executor | None = None,
        controller: FixedController | None = None,
    ) -> None:
        self.disk = disk or new_disk()
        self.clock = ManualClock(1_000)
        self.executor = executor or InlineExecutor()
        self.logs: LogManager = manager_on(self.disk, A, B, executor=self.executor)
        self.replicas = Replicas(ME, self.logs, LogConfig.parse)
        self.crashes: list[BaseException] = []
        channel = controller or FixedController(None)
        # Nobody here asks the quorum anything.
        no_quorum: Any = None
        settings = DynamicSettings(BrokerSettings.parse(_PROPERTIES))
        tasks = Tasks(self.crashes.append)
        groups = GroupCoordinator(
            clock=self.clock,
            rng=Random(0),
            executor=self.executor,
            tasks=tasks,
            settings=settings,
            logs=self.logs,
            replicas=self.replicas,
            image=image,
        )
        self.services = Services(
            node_id=ME,
            cluster_id="c",
            clock=self.clock,
            rng=Random(0),
            executor=self.executor,
            checksums=InlineChecksums(),
            tasks=tasks,
            settings=settings,
            logs=self.logs,
            replicas=self.replicas,
            quorum=no_quorum,
            controller=channel,
            sessions=FetchSessions(10, partial(Random(0).randrange, 1, 100)),
            producer_ids=ProducerIds(_asking(channel), ME),
            groups=groups,
            offsets_topic=InternalTopic(_asking(channel), settings, tasks, offsets_topic),
            transactions=TransactionCoordinator(
                clock=self.clock,
                executor=self.executor,
                tasks=tasks,
                settings=settings,
                logs=self.logs,
                replicas=self.replicas,
                groups=groups,
                image=image,
            ),
            transaction_topic=InternalTopic(_asking(channel), settings, tasks, transaction_topic),
            image=image,
        )
        self.ctx = Context(self.services, listener="PLAINTEXT", client_address="10.0.0.1")

    async def open(self) -> "Hosted":
        await self.logs.open()
        await self.replicas.start(self.services.image)
        return self

    def partition(self, topic: str, index: int = 0) -> Partition:
        return self.replicas.get(TopicPartition(topic, index))

    def log(self, topic: str, index: int = 0) -> Log:
        return self.partition(topic, index).log

    def settle(self) -> None:
        """Let every high watermark follow, as it does after a produce."""
        for partition in self.replicas.partitions.values():
            partition.take(partition.image)

    async def ask(self, api: Api, body: object, version: int) -> Any:
        """What the handler answers, with request and answer taken through their bytes."""
        frame = encode_request(body, version, key=api.key, correlation_id=7, client_id="test")
        answer = api.handle(self.ctx, decode_request(frame[_FRAME_LENGTH:]))
        if inspect.iscoroutine(answer):
            answer = await answer
        parts = response_parts(answer, version, key=api.key, correlation_id=7)
        return decode_response(b"".join(parts)[_FRAME_LENGTH:], version, key=api.key)[1]


def _asking(channel: FixedController) -> Any:
    async def ask(request: AllocateProducerIdsRequest) -> object:
        return await channel.call(request)

    return ask


_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "log.dirs": f"{A},{B}",
}


async def hosted(image: MetadataImage, **ports: Any) -> Hosted:
    return await Hosted(image, **ports).open()


async def one_topic(name: str = "orders", partitions: int = 1, **ports: Any) -> Hosted:
    return await hosted(image_of({name: [partition_image()] * partitions}), **ports)
