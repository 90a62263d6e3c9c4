"""A broker as handlers see it, with a real controller behind it, whose decisions are committed at once.

There is no network, and the quorum is asleep until a test opens it. A test registers brokers, makes topics,
asks through the wire's own bytes, and looks at the answer.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any

from barnabas.base.checksum import InlineChecksums
from barnabas.base.executor import InlineExecutor
from barnabas.base.ids import Uuid
from barnabas.base.tasks import Tasks
from barnabas.controller.bootstrap import bootstrap_records
from barnabas.controller.controller import Controller
from barnabas.controller.decision import Decision
from barnabas.controller.facts import SUPPORTED_FEATURES, ControllerSettings
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import decode_request, decode_response, encode_request, response_parts
from barnabas.protocol.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from barnabas.protocol.messages.log_dirs import (
    AssignReplicasToDirsDirectoryData,
    AssignReplicasToDirsPartitionData,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsTopicData,
)
from barnabas.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
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
from barnabas.storage.config import LogConfig
from support.broker_properties import combined
from support.clocks import ManualClock
from support.log.managers import A, manager_on, new_disk
from support.quorums import Recorder, new_quorum

ME = 1
CLUSTER_ID = "8UFBlDBzRM2WGJual5ztlg"
EPOCH = 1
HERE = {"PLAINTEXT": ("localhost", 9092)}
_FRAME_LENGTH = 4


def directory_of(broker_id: int) -> Uuid:
    return Uuid(b"directory of %3d" % broker_id)


class CommittingController:
    """The way to the controller. `asked` has the requests that came; while `is_slow` their answers wait."""

    def __init__(self, settings: ControllerSettings, clock: ManualClock) -> None:
        self.controller = Controller(settings, Random(0), bootstrap_records())
        self.asked: list[object] = []
        self.released = asyncio.Event()
        self.released.set()
        self.on_image: Callable[[MetadataImage], None] = lambda _: None
        self._clock = clock

    def claim(self) -> None:
        now_ms = self._clock.monotonic_ms()
        image = self.controller.image
        self._commit(self.controller.claim(EPOCH, image, in_transaction=False, now_ms=now_ms))

    async def call(self, request: object) -> object:
        self.asked.append(request)
        await self.released.wait()
        return self.decide(request)

    def decide(self, request: object) -> object:
        now_ms = self._clock.monotonic_ms()
        offset = self.controller.image.offset + 1
        decision = self.controller.decide(request, next_offset=offset, now_ms=now_ms)
        self._commit(decision)
        return decision.response

    def _commit(self, decision: Decision) -> None:
        self.controller.apply(
            decision, base_offset=self.controller.image.offset + 1, now_ms=self._clock.monotonic_ms()
        )
        self.on_image(self.controller.image)


class Decided:
    """A cluster of one, and more brokers if a test registers them; they are known and do nothing."""

    def __init__(self, properties: Mapping[str, str] | None = None, *, listener: str = "PLAINTEXT") -> None:
        self.clock = ManualClock(1_000)
        disk, executor = new_disk(), InlineExecutor()
        settings = DynamicSettings(BrokerSettings.parse(combined(properties)))
        self.channel = CommittingController(_controller_settings(settings.now), self.clock)
        self.channel.on_image = self._take
        self.crashes: list[BaseException] = []
        self.recorder = Recorder()
        logs = manager_on(disk, A, executor=executor)
        tasks = Tasks(self.crashes.append)
        replicas = Replicas(ME, logs, LogConfig.parse)
        groups = GroupCoordinator(
            clock=self.clock,
            rng=Random(0),
            executor=executor,
            tasks=tasks,
            settings=settings,
            logs=logs,
            replicas=replicas,
            image=self.channel.controller.image,
        )
        self.services = Services(
            node_id=ME,
            cluster_id=CLUSTER_ID,
            clock=self.clock,
            rng=Random(0),
            executor=executor,
            checksums=InlineChecksums(),
            tasks=tasks,
            settings=settings,
            logs=logs,
            replicas=replicas,
            quorum=new_quorum(disk, self.recorder, clock=self.clock),
            controller=self.channel,
            sessions=FetchSessions(10, partial(Random(0).randrange, 1, 100)),
            producer_ids=ProducerIds(self.channel.call, ME),
            groups=groups,
            offsets_topic=InternalTopic(self.channel.call, settings, tasks, offsets_topic),
            transactions=TransactionCoordinator(
                clock=self.clock,
                executor=executor,
                tasks=tasks,
                settings=settings,
                logs=logs,
                replicas=replicas,
                groups=groups,
                image=self.channel.controller.image,
            ),
            transaction_topic=InternalTopic(self.channel.call, settings, tasks, transaction_topic),
            image=self.channel.controller.image,
        )
        self.ctx = Context(self.services, listener=listener, client_address="10.0.0.1")
        self.channel.claim()

    def _take(self, image: MetadataImage) -> None:
        self.services.image = image
        self.services.settings.take(image)

    @property
    def image(self) -> MetadataImage:
        return self.services.image

    # The cluster

    def register(
        self,
        broker_id: int = ME,
        listeners: Mapping[str, tuple[str, int]] | None = None,
        *,
        rack: str | None = None,
        fenced: bool = False,
        log_dirs: tuple[Uuid, ...] = (),
    ) -> None:
        """A broker comes, and unless it is to stay fenced, takes part."""
        answer = self.channel.decide(
            BrokerRegistrationRequest(
                broker_id=broker_id,
                cluster_id=CLUSTER_ID,
                incarnation_id=Uuid(b"incarnation %4d" % broker_id),
                listeners=[
                    Listener(name=name, host=host, port=port, security_protocol=0)
                    for name, (host, port) in (HERE if listeners is None else listeners).items()
                ],
                features=[
                    Feature(name=name, min_supported_version=one.least, max_supported_version=one.most)
                    for name, one in SUPPORTED_FEATURES.items()
                ],
                rack=rack,
                log_dirs=list(log_dirs) or [directory_of(broker_id)],
            )
        )
        assert isinstance(answer, BrokerRegistrationResponse)
        assert answer.error_code == 0, answer
        if not fenced:
            self.heartbeat(broker_id)

    def heartbeat(self, broker_id: int, *, want_fence: bool = False, offline: tuple[Uuid, ...] = ()) -> None:
        answer = self.channel.decide(
            BrokerHeartbeatRequest(
                broker_id=broker_id,
                broker_epoch=self.image.brokers[broker_id].epoch,
                current_metadata_offset=self.image.offset,
                want_fence=want_fence,
                offline_log_dirs=list(offline),
            )
        )
        assert isinstance(answer, BrokerHeartbeatResponse)
        assert answer.error_code == 0, answer

    def create(
        self,
        name: str,
        partitions: int = 1,
        *,
        assigned: list[list[int]] | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> Uuid:
        """A topic, on these brokers if it is said on which, and its id."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions if assigned is None else -1,
            replication_factor=1 if assigned is None else -1,
            assignments=[
                CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
                for index, brokers in enumerate(assigned or ())
            ],
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        answer = self.channel.decide(CreateTopicsRequest(topics=[topic]))
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.topics[0].error_code == 0, answer
        return self.image.topics[name].id

    def assign(self, broker_id: int, topic_id: Uuid, directory: Uuid) -> None:
        """A broker says in which of its directories the first partition of a topic is."""
        partition = AssignReplicasToDirsPartitionData(partition_index=0)
        topic = AssignReplicasToDirsTopicData(topic_id=topic_id, partitions=[partition])
        answer = self.channel.decide(
            AssignReplicasToDirsRequest(
                broker_id=broker_id,
                broker_epoch=self.image.brokers[broker_id].epoch,
                directories=[AssignReplicasToDirsDirectoryData(id=directory, topics=[topic])],
            )
        )
        assert isinstance(answer, AssignReplicasToDirsResponse)
        assert answer.error_code == 0, answer

    # Requests

    def ask(self, api: Api, body: object, version: int) -> Any:
        """What a handler that does not wait answers."""
        answer = api.handle(self.ctx, _request(api, body, version))
        assert not inspect.iscoroutine(answer), "it waits"
        return _read(api, answer, version)

    async def ask_and_wait(self, api: Api, body: object, version: int) -> Any:
        answer = api.handle(self.ctx, _request(api, body, version))
        if inspect.iscoroutine(answer):
            answer = await answer
        return _read(api, answer, version)

    def refuse(self, api: Api, body: object, version: int, code: ErrorCode) -> Any:
        return _read(api, api.refuse(_request(api, body, version).body, version, code), version)


def _request(api: Api, body: object, version: int) -> Any:
    frame = encode_request(body, version, key=api.key, correlation_id=7, client_id="test")
    return decode_request(frame[_FRAME_LENGTH:])


def _read(api: Api, answer: object, version: int) -> Any:
    parts = response_parts(answer, version, key=api.key, correlation_id=7)
    return decode_response(b"".join(parts)[_FRAME_LENGTH:], version, key=api.key)[1]


def _controller_settings(settings: BrokerSettings) -> ControllerSettings:
    return ControllerSettings(
        node_id=ME,
        cluster_id=CLUSTER_ID,
        voters=(ME,),
        num_partitions=settings.num_partitions,
        default_replication_factor=settings.default_replication_factor,
    )


def one_broker(properties: Mapping[str, str] | None = None) -> Decided:
    decided = Decided(properties)
    decided.register()
    return decided


def row(apis: tuple[Api, ...], key: int) -> Api:
    """The row of a key, of a file that has several."""
    return next(api for api in apis if api.key == key)
