"""This node's controller: its part in the quorum, and calls to the active controller.

With one voter the active controller is always in this process. With several voters, this is where requests
will be sent to another node, transparently to callers.
"""

import logging
from collections.abc import Callable, Coroutine
from types import MappingProxyType
from typing import Any, Final

from barnabas.base.ids import Uuid
from barnabas.base.settings import SettingType, format_value
from barnabas.controller.bootstrap import bootstrap_records
from barnabas.controller.controller import Controller
from barnabas.controller.facts import SUPPORTED_FEATURES, ControllerSettings
from barnabas.controller.shell import ControllerShell
from barnabas.metadata.snapshot import SnapshotSchedule
from barnabas.protocol.messages.brokers import ControllerRegistrationRequest, Feature, Listener
from barnabas.raft.driver import Quorum
from barnabas.raft.facts import Voter
from barnabas.raft.settings import QuorumSettings
from barnabas.raft.snapshots import read_bootstrap
from barnabas.server.cluster.image_follower import REACH_TIMEOUT_S, ImageFollower
from barnabas.server.ports import Ports
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.catalog import BROKER
from barnabas.server.settings.change import validate_broker_config, validate_other_config

logger = logging.getLogger(__name__)


class ControllerNode:
    """start() joins the quorum; call() asks the active controller."""

    def __init__(
        self, settings: BrokerSettings, ports: Ports, cluster_id: str, follower: ImageFollower
    ) -> None:
        self._settings = settings
        self._follower = follower
        bootstrap = read_bootstrap(ports.fs, settings.metadata_log_dir)
        self.shell: Final = ControllerShell(
            Controller(
                _controller_settings(settings, cluster_id),
                ports.rng,
                bootstrap_records() if bootstrap is None else bootstrap,
            ),
            ports.clock,
            snapshots=SnapshotSchedule(
                bytes_max=settings.metadata_log_max_record_bytes_between_snapshots,
                interval_ms=settings.metadata_log_max_snapshot_interval_ms,
            ),
            on_image=follower.publish,
        )
        self.quorum: Final = Quorum(
            fs=ports.fs,
            clock=ports.clock,
            executor=ports.executor,
            rng=ports.rng,
            directory=settings.metadata_log_dir,
            node_id=settings.node_id,
            voters=[Voter(one.id, one.host, one.port) for one in settings.controller_quorum_voters],
            settings=_quorum_settings(settings),
            cluster_id=cluster_id,
            listener=self.shell,
        )
        self.shell.attach(self.quorum)

    async def start(self, run: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        await self.quorum.open()
        run(self.quorum.run())
        run(self.shell.run())

    async def call(self, request: object) -> object:
        """Return the active controller's response, after this broker's image includes its changes.

        If the image does not get that far within REACH_TIMEOUT_S, the changes become visible later.
        """
        answer = await self.shell.call(request)
        await self._follower.reached(self.quorum.high_watermark - 1, REACH_TIMEOUT_S)
        return answer

    async def register(self, listeners: list[Listener], incarnation_id: Uuid) -> None:
        """Register this node as a controller with the active controller."""
        await self.shell.call(
            ControllerRegistrationRequest(
                controller_id=self._settings.node_id,
                incarnation_id=incarnation_id,
                listeners=listeners,
                features=self.supported_features(),
            )
        )

    def supported_features(self) -> list[Feature]:
        return [
            Feature(name=name, min_supported_version=levels.least, max_supported_version=levels.most)
            for name, levels in SUPPORTED_FEATURES.items()
        ]

    async def close(self) -> None:
        """The tasks that start() ran must have ended."""
        await self.quorum.close()


def _controller_settings(settings: BrokerSettings, cluster_id: str) -> ControllerSettings:
    return ControllerSettings(
        node_id=settings.node_id,
        cluster_id=cluster_id,
        voters=tuple(voter.id for voter in settings.controller_quorum_voters),
        num_partitions=settings.num_partitions,
        default_replication_factor=settings.default_replication_factor,
        delete_topic_enable=settings.delete_topic_enable,
        static_config=settings.given,
        validate_broker_config=validate_broker_config,
        validate_other_config=validate_other_config,
        broker_lists=MappingProxyType(
            {
                name: format_value(one.default) or ""
                for name, one in BROKER.items()
                if one.type is SettingType.LIST
            }
        ),
        session_timeout_ms=settings.broker_session_timeout_ms,
        max_idle_interval_ms=settings.metadata_max_idle_interval_ms,
        auto_leader_rebalance=settings.auto_leader_rebalance_enable,
        leader_imbalance_check_ms=settings.leader_imbalance_check_interval_seconds * 1000,
        unclean_election_check_ms=settings.unclean_leader_election_interval_ms,
    )


def _quorum_settings(settings: BrokerSettings) -> QuorumSettings:
    return QuorumSettings(
        election_timeout_ms=settings.controller_quorum_election_timeout_ms,
        fetch_timeout_ms=settings.controller_quorum_fetch_timeout_ms,
        election_backoff_max_ms=settings.controller_quorum_election_backoff_max_ms,
        request_timeout_ms=settings.controller_quorum_request_timeout_ms,
        retry_backoff_ms=settings.controller_quorum_retry_backoff_ms,
        log_segment_bytes=settings.metadata_log_segment_bytes,
        log_segment_ms=settings.metadata_log_segment_ms,
        max_retention_bytes=settings.metadata_max_retention_bytes,
        max_retention_ms=settings.metadata_max_retention_ms,
        max_bytes_between_snapshots=settings.metadata_log_max_record_bytes_between_snapshots,
        max_snapshot_interval_ms=settings.metadata_log_max_snapshot_interval_ms,
    )
