"""The controller (pure): the latest image, and the decisions on it.

The image has all committed records and, on the active controller, all decisions since, so that the next
decision is made on top of them. A standby controller follows the committed images. The shell calls decide(),
appends the records, and calls apply(), with nothing in between.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any, Final

from barnabas.base.ids import Uuid
from barnabas.controller.alter_partition import alter_partition
from barnabas.controller.bootstrap import activation_records
from barnabas.controller.configs import alter_configs, incremental_alter_configs
from barnabas.controller.decision import Decision
from barnabas.controller.directories import assign_replicas
from barnabas.controller.elections import elect_leaders
from barnabas.controller.facts import ControllerSettings, Facts
from barnabas.controller.features import update_features
from barnabas.controller.heartbeats import heartbeat
from barnabas.controller.partitions import create_partitions
from barnabas.controller.periodic import Periodic
from barnabas.controller.producer_ids import allocate_producer_ids
from barnabas.controller.registrations import register_broker, register_controller, unregister_broker
from barnabas.controller.sessions import Sessions
from barnabas.controller.topic_deletion import delete_topics
from barnabas.controller.topics import create_topics
from barnabas.metadata.changes import Changes
from barnabas.metadata.image import EMPTY_IMAGE, BrokerImage, MetadataImage
from barnabas.metadata.node_changes import FENCE
from barnabas.protocol.messages import brokers, configs, log_dirs, replicas, topics, transactions
from barnabas.protocol.stored.cluster_nodes import BrokerRegistrationChangeRecord, UnregisterBrokerRecord

Decide = Callable[[MetadataImage, Any, Facts], Decision]

# Every request that a controller handles.
DECISIONS: Final[Mapping[type, Decide]] = MappingProxyType(
    {
        topics.CreateTopicsRequest: create_topics,
        topics.DeleteTopicsRequest: delete_topics,
        topics.CreatePartitionsRequest: create_partitions,
        configs.AlterConfigsRequest: alter_configs,
        configs.IncrementalAlterConfigsRequest: incremental_alter_configs,
        replicas.ElectLeadersRequest: elect_leaders,
        replicas.AlterPartitionRequest: alter_partition,
        brokers.UpdateFeaturesRequest: update_features,
        brokers.BrokerRegistrationRequest: register_broker,
        brokers.BrokerHeartbeatRequest: heartbeat,
        brokers.UnregisterBrokerRequest: unregister_broker,
        brokers.ControllerRegistrationRequest: register_controller,
        transactions.AllocateProducerIdsRequest: allocate_producer_ids,
        log_dirs.AssignReplicasToDirsRequest: assign_replicas,
    }
)


class Controller:
    """`epoch` is that of an active controller, None on standby."""

    def __init__(self, settings: ControllerSettings, rng: Random, bootstrap: Sequence[object]) -> None:
        self.settings: Final = settings
        self.image: MetadataImage = EMPTY_IMAGE
        self.epoch: int | None = None
        # The incarnation id of the broker in this process, once it has one.
        self.local_incarnation: Uuid | None = None
        self._rng = rng
        self._bootstrap = tuple(bootstrap)
        self._sessions = Sessions(settings.session_timeout_ms)
        self._periodic = Periodic(settings, 0)

    # Activation

    def follow(self, image: MetadataImage) -> None:
        """Take the latest committed image while on standby."""
        assert self.epoch is None, f"active in epoch {self.epoch}, so ahead of the committed image"
        self.image = image

    def claim(self, epoch: int, image: MetadataImage, *, in_transaction: bool, now_ms: int) -> Decision:
        """Become active; `image` has everything before this epoch. Write the decision first."""
        self.epoch = epoch
        self.image = image
        self._sessions = Sessions(self.settings.session_timeout_ms)
        for broker in image.brokers.values():
            if self._is_gone(broker):
                continue
            # Every unfenced broker gets a full session timeout for its next heartbeat.
            self._sessions.start(broker.id, fenced=broker.fenced, registered_at=image.offset, now_ms=now_ms)
        self._periodic = Periodic(self.settings, now_ms)
        records = activation_records(image, self._bootstrap, self.settings, in_transaction=in_transaction)
        return Decision(tuple(records))

    def _is_gone(self, broker: BrokerImage) -> bool:
        """Whether it is a previous incarnation of this node's own broker, which cannot be alive."""
        return (
            broker.id == self.settings.node_id
            and broker.registration.incarnation_id != self.local_incarnation
        )

    def renounce(self, image: MetadataImage) -> None:
        """Go on standby, and drop decisions that are not committed."""
        self.epoch = None
        self.image = image

    # Decisions

    def decide(self, request: object, *, next_offset: int, now_ms: int) -> Decision:
        """Decide a request without changing any state. `next_offset` is that of the first record."""
        decide = DECISIONS.get(type(request))
        assert decide is not None, f"not a controller request: {request!r}"
        return decide(self.image, request, self._facts(next_offset, now_ms))

    def due(self, *, next_offset: int, now_ms: int) -> Decision | None:
        """The next decision of periodic work that is due, or None."""
        return self._periodic.due(self.image, self._facts(next_offset, now_ms))

    def next_due_ms(self, now_ms: int) -> int:
        return self._periodic.next_ms(self._facts(self.image.offset + 1, now_ms))

    def apply(self, decision: Decision, *, base_offset: int, now_ms: int) -> None:
        """Apply a decision whose records were appended at `base_offset`."""
        assert self.epoch is not None, "only an active controller applies decisions"
        last_offset = base_offset + len(decision.records) - 1
        if decision.records:
            changes = Changes(self.image)
            for record in decision.records:
                changes.apply(record)
            self.image = changes.finish(last_offset, self.epoch, self.image.append_time_ms)
        for record in decision.records:
            self._remember(record)
        if decision.contact is not None:
            self._sessions.touch(decision.contact, now_ms=now_ms, last_offset=last_offset)

    def _remember(self, record: object) -> None:
        match record:
            case UnregisterBrokerRecord():
                self._sessions.end(record.broker_id)
            case BrokerRegistrationChangeRecord() if record.fenced == FENCE:
                self._sessions.fence(record.broker_id)

    def _facts(self, next_offset: int, now_ms: int) -> Facts:
        return Facts(self.settings, self._rng, next_offset, now_ms, self._sessions)
