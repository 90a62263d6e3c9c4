"""This broker's transaction coordinator: it leads partitions of __transaction_state as the metadata says."""

from typing import Final, TypeAlias

from barnabas.base.clock import Clock
from barnabas.base.executor import Executor
from barnabas.base.ids import TopicPartition
from barnabas.base.tasks import Tasks
from barnabas.coordinators.runtime.host import ShardHost
from barnabas.coordinators.runtime.ports import LedPartition
from barnabas.coordinators.runtime.shards import Shards
from barnabas.coordinators.txn.shard import TxnShard
from barnabas.coordinators.txn.table import MarkersToWrite, TxnSettings, TxnTable
from barnabas.metadata.changes import Changes
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.header import Codec
from barnabas.replication.replicas import Replicas
from barnabas.server.coordination.groups import GroupCoordinator
from barnabas.server.coordination.hosted_partition import LedPartitions
from barnabas.server.coordination.markers import MarkerAppender, TransactionMarkerManager
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.dynamic import DynamicSettings
from barnabas.storage.manager import LogManager

TRANSACTION_TOPIC: Final = "__transaction_state"
_FEATURE: Final = "transaction.version"

TxnHost: TypeAlias = ShardHost[TxnShard]


class TransactionCoordinator:
    """follow() must be called with every metadata image after it has been applied."""

    def __init__(
        self,
        *,
        clock: Clock,
        executor: Executor,
        tasks: Tasks,
        settings: DynamicSettings,
        logs: LogManager,
        replicas: Replicas,
        groups: GroupCoordinator,
        image: MetadataImage,
    ) -> None:
        self._settings = settings
        self._image = image
        self.marker_appender: Final = MarkerAppender(clock=clock, logs=logs, replicas=replicas, groups=groups)
        self._markers: Final = TransactionMarkerManager(
            self.marker_appender,
            image=lambda: self._image,
            is_pending=self._is_pending,
            on_written=self._markers_written,
        )
        self.shards: Final = Shards(
            TRANSACTION_TOPIC,
            clock=clock,
            executor=executor,
            tasks=tasks,
            new=self._new_shard,
            activate=self._activate,
            commit_timeout_ms=lambda: settings.now.request_timeout_ms,
            load_bytes_at_once=settings.now.transaction_state_log_load_buffer_size,
        )
        self.shards.take_image(image)
        self._led: Final = LedPartitions(
            self.shards, replicas=replicas, logs=logs, executor=executor, codec=Codec.NONE
        )
        settings.subscribe(self._take_settings)

    # Shards

    def host_of(self, transactional_id: str) -> TxnHost | ErrorCode:
        """The active shard of a transactional id, or the reason why there is none on this broker.

        Writes queued markers first, so that a request does not wait for them.
        """
        self._markers.flush()
        return self.shards.host_of(transactional_id)

    def settle(self) -> None:
        """Write queued markers. Call it before a log starts a verification, which a marker would end."""
        self._markers.flush()

    def _new_shard(self, partition: LedPartition) -> TxnShard:
        # A callback, because the topic's max.message.bytes may change.
        table = TxnTable(
            self._txn_settings(), self._markers, partition.leader_epoch, lambda: partition.batch_bytes_max
        )
        return TxnShard(table)

    def _activate(self, host: TxnHost) -> None:
        # The settings may have changed while the log was being loaded.
        host.shard.table.settings = self._txn_settings()
        host.activate()

    # Markers

    def _is_pending(self, ended: MarkersToWrite) -> bool:
        host = self.shards.host_of(ended.transactional_id)
        # A shard that was loaded again asks again; earlier requests are obsolete.
        return isinstance(host, ShardHost) and host.shard.table.is_pending(ended)

    def _markers_written(self, ended: MarkersToWrite, partitions: frozenset[TopicPartition]) -> None:
        host = self.shards.host_of(ended.transactional_id)
        if isinstance(host, ShardHost):
            shard = host.shard
            host.run(lambda now: shard.table.markers_written(ended, partitions, now))

    # Following the metadata

    def start(self, image: MetadataImage) -> None:
        """Apply the first image."""
        self._image = image
        self.shards.take_image(image)
        self._take_settings(self._settings.now, frozenset())
        self._led.follow(image)

    def follow(self, image: MetadataImage, changes: Changes) -> None:
        before, self._image = self._image, image
        if before.features != image.features:
            self._take_settings(self._settings.now, frozenset())
        if changes.topics_changed or changes.topics_deleted:
            self.shards.take_image(image)
            self._led.follow(image)

    def _take_settings(self, _settings: BrokerSettings, _changed: frozenset[str]) -> None:
        now = self._txn_settings()
        for host in self.shards.hosts.values():
            host.shard.table.settings = now

    def _txn_settings(self) -> TxnSettings:
        settings = self._settings.now
        return TxnSettings(
            timeout_max_ms=settings.transaction_max_timeout_ms,
            id_expiration_ms=settings.transactional_id_expiration_ms,
            timeouts_interval_ms=settings.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            expiration_interval_ms=settings.transaction_remove_expired_transaction_cleanup_interval_ms,
            two_phase_commit=settings.transaction_two_phase_commit_enable,
            transaction_version=self._image.features.get(_FEATURE, 0),
        )

    def close(self) -> None:
        """The broker is stopping: the next coordinator completes prepared transactions."""
        self._markers.close()
        self._led.close()
