"""An active controller whose decisions are committed at once, with a list of all records."""

from dataclasses import replace
from random import Random
from typing import Any

from barnabas.base.ids import Uuid
from barnabas.controller.bootstrap import bootstrap_records
from barnabas.controller.controller import Controller
from barnabas.controller.decision import Decision
from barnabas.controller.facts import SUPPORTED_FEATURES, ControllerSettings
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionImage
from barnabas.protocol.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from barnabas.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from support.metadata_images import replay

CLUSTER = "4L6g3nShT-eMCtK--X86sw"
NODE = 1


def settings(**changes: Any) -> ControllerSettings:
    return replace(
        ControllerSettings(
            node_id=NODE,
            cluster_id=CLUSTER,
            voters=(NODE,),
            # Broker settings are not tested here.
            validate_broker_config=lambda configs, broker: None,
        ),
        **changes,
    )


def directory_of(broker: int, number: int = 0) -> Uuid:
    return Uuid(bytes([0xD0 + number]) * 15 + bytes([broker]))


def registration(broker: int, *, incarnation: int = 0, **changes: Any) -> BrokerRegistrationRequest:
    request = BrokerRegistrationRequest(
        broker_id=broker,
        cluster_id=CLUSTER,
        incarnation_id=Uuid(bytes([incarnation, broker]) * 8),
        listeners=[Listener(name="PLAINTEXT", host="localhost", port=9092 + broker, security_protocol=0)],
        features=[
            Feature(name=name, min_supported_version=one.least, max_supported_version=one.most)
            for name, one in SUPPORTED_FEATURES.items()
        ],
        rack=None,
        log_dirs=[directory_of(broker)],
    )
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def creatable(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    *,
    assignments: list[list[int]] | None = None,
    configs: dict[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=-1 if assignments else partitions,
        replication_factor=-1 if assignments else replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=at, broker_ids=ids)
            for at, ids in enumerate(assignments or [])
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )


class ActiveController:
    """The time advances only when a test advances it."""

    def __init__(self, *, seed: int = 0, bootstrap: list[object] | None = None, **changes: Any) -> None:
        self.controller = Controller(
            settings(**changes), Random(seed), bootstrap_records() if bootstrap is None else bootstrap
        )
        self.now_ms = 1_000
        # Offset 0 is the leader change record.
        self.next_offset = 1
        self.log: list[object] = []
        start = replace(EMPTY_IMAGE, offset=0, epoch=1)
        self.write(self.controller.claim(1, start, in_transaction=False, now_ms=self.now_ms))

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    def replayed(self) -> MetadataImage:
        """The image built from all records."""
        return replay(self.log, offset=self.next_offset - 1, epoch=1)

    def write(self, decision: Decision) -> None:
        self.controller.apply(decision, base_offset=self.next_offset, now_ms=self.now_ms)
        self.next_offset += len(decision.records)
        self.log += decision.records

    def write_record(self, *records: object) -> None:
        """Commit records that no request decided."""
        self.write(Decision(records))

    def decide(self, request: object) -> Decision:
        return self.controller.decide(request, next_offset=self.next_offset, now_ms=self.now_ms)

    def ask(self, request: object) -> Any:
        """Carry out the decision for a request, and return the response."""
        decision = self.decide(request)
        self.write(decision)
        return decision.response

    def tick(self, ms: int) -> list[object]:
        """Advance the time, and return the records of all decisions that became due."""
        self.now_ms += ms
        before = len(self.log)
        while True:
            decision = self.controller.due(next_offset=self.next_offset, now_ms=self.now_ms)
            if decision is None:
                return self.log[before:]
            self.write(decision)

    # Brokers

    def register(self, broker: int, **changes: Any) -> BrokerRegistrationResponse:
        answer: BrokerRegistrationResponse = self.ask(registration(broker, **changes))
        return answer

    def beat(self, broker: int, **changes: Any) -> BrokerHeartbeatResponse:
        """Send a heartbeat of a broker that has all metadata and wants to be unfenced."""
        request = BrokerHeartbeatRequest(
            broker_id=broker,
            broker_epoch=self.image.brokers[broker].epoch if broker in self.image.brokers else -1,
            current_metadata_offset=self.next_offset - 1,
        )
        for name, value in changes.items():
            setattr(request, name, value)
        answer: BrokerHeartbeatResponse = self.ask(request)
        return answer

    def with_brokers(self, *brokers: int) -> "ActiveController":
        for broker in brokers:
            assert self.register(broker).error_code == 0
            assert not self.beat(broker).is_fenced
        return self

    # Topics

    def create(self, *topics: CreatableTopic, validate_only: bool = False) -> Any:
        return self.ask(CreateTopicsRequest(topics=list(topics), validate_only=validate_only)).topics

    def with_topic(self, name: str, *assignments: list[int], **configs: str) -> "ActiveController":
        dotted: dict[str, str | None] = {key.replace("_", "."): value for key, value in configs.items()}
        (result,) = self.create(creatable(name, assignments=list(assignments), configs=dotted))
        assert result.error_code == 0, result
        return self

    def partition(self, name: str, number: int = 0) -> PartitionImage:
        return self.image.topics[name].partitions[number]
