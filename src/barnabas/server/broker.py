"""One node, wired together: start from settings and ports, serve, and stop cleanly.

Every start is the same, for one node or several: the quorum opens the metadata log and elects a leader, the
metadata image is built, the logs are loaded by the image, the listeners are bound, the broker registers with
the controller, catches up, and is unfenced. A single node has no shortcut.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from barnabas.base.errors import BarnabasError
from barnabas.base.faults import report_fault
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.base.tasks import Tasks, keep_running, together
from barnabas.metadata.changes import Changes
from barnabas.metadata.image import BROKER_RESOURCE, MetadataImage
from barnabas.replication.replicas import Replicas, topic_config
from barnabas.server.cluster.controllers import ControllerNode
from barnabas.server.cluster.directory_reports import DirectoryReports
from barnabas.server.cluster.formatting import new_id
from barnabas.server.cluster.image_follower import ImageFollower
from barnabas.server.cluster.lifecycle import Lifecycle
from barnabas.server.cluster.releases import check_served
from barnabas.server.coordination.groups import GroupCoordinator
from barnabas.server.coordination.internal_topic import InternalTopic, offsets_topic, transaction_topic
from barnabas.server.coordination.producer_ids import ProducerIds
from barnabas.server.coordination.transactions import TransactionCoordinator
from barnabas.server.fetch.sessions import FetchSessions
from barnabas.server.handlers.controller import APIS as CONTROLLER_APIS
from barnabas.server.handlers.table import spoken
from barnabas.server.metrics.request_stats import RequestStats
from barnabas.server.network.listener import Listener
from barnabas.server.network.listeners import Listeners
from barnabas.server.ports import Ports
from barnabas.server.requests.api import Dispatcher
from barnabas.server.services import Services
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.dynamic import DynamicSettings
from barnabas.storage.config import LogConfig
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import DirectoryOffline
from barnabas.storage.manager import LogManager
from barnabas.storage.upkeep import Upkeep

logger = logging.getLogger(__name__)

# Timeouts: of a start for the quorum and the controller; of a stop for the controller, and for clients.
START_TIMEOUT_S: Final = 60.0
LEAVE_TIMEOUT_S: Final = 5.0
FINISH_TIMEOUT_S: Final = 5.0


class StartFailed(BarnabasError):
    """The broker cannot be started; the message gives the reason."""


class Broker:
    """start(), then serve until stop(). `failed` is done when a task or disk failed that it depends on."""

    def __init__(self, settings: BrokerSettings, ports: Ports, *, cluster_id: str) -> None:
        self.settings: Final = DynamicSettings(settings)
        self.stats: Final = RequestStats()
        self._listeners: Final = Listeners(self.settings, ports, self.stats)
        self.descriptors: Final = ports.descriptors
        self._ports = ports
        self._cluster_id = cluster_id
        self._node_id = settings.node_id
        self._follower = ImageFollower()
        # Tasks that the broker depends on: if one fails, the broker stops.
        self._tasks = Tasks(self._crashed)
        # Tasks for one client, group or topic: a failure does not affect others.
        self._isolated = Tasks(_task_failed)
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stopping = False
        self.logs: Final = LogManager(
            ports.fs,
            ports.clock,
            ports.executor,
            paths=settings.log_dirs,
            cluster_id=cluster_id,
            node_id=settings.node_id,
            configs=self._log_config,
            new_id=self._new_id,
            loads_at_once=settings.num_recovery_threads_per_data_dir,
        )
        self.controller: Final = ControllerNode(settings, ports, cluster_id, self._follower)
        self.replicas: Final = Replicas(settings.node_id, self.logs, self._configure)
        self.lifecycle: Lifecycle | None = None
        self._reports = DirectoryReports(
            self.replicas,
            self.logs,
            self.controller.call,
            lambda: -1 if self.lifecycle is None else self.lifecycle.epoch,
        )
        self.services: Final = self._make_services()

    @property
    def listeners(self) -> list[Listener]:
        return self._listeners.all

    @property
    def addresses(self) -> list[str]:
        """The advertised host:port of every client listener."""
        return self._listeners.addresses

    # Starting

    async def start(self) -> None:
        """Start until clients are served. If that fails, undo what was started."""
        try:
            await self._unless_failed(self._start())
        except BaseException:
            await self.stop(clean=False)
            raise

    async def _unless_failed(self, start: Coroutine[Any, Any, None]) -> None:
        """Start, but fail if a background task fails meanwhile: the start would wait for it in vain."""
        starting = asyncio.ensure_future(start)
        try:
            await asyncio.wait((starting, self.failed), return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                self.failed.result()
        finally:
            if not starting.done():
                starting.cancel()
                await asyncio.gather(starting, return_exceptions=True)
        await starting

    async def _start(self) -> None:
        await self.logs.open_directories()
        self._run(self._follower.run())
        await self.controller.start(self._run)
        if not await self._follower.until(self._is_complete, START_TIMEOUT_S):
            raise StartFailed(f"the quorum had no leader within {START_TIMEOUT_S:.0f} s")
        image = self._follower.latest
        check_served(image.metadata_version)
        self.settings.take(image)
        # Including dynamic settings from the metadata: those changed before a restart apply after it.
        settings = self.settings.now
        self.logs.at_once = settings.num_recovery_threads_per_data_dir
        report = await self.logs.load()
        logger.info("logs loaded count=%d broken=%d", report.loaded, len(report.broken))
        await self.replicas.start(image)
        self._follower.begin(image, self._carry_out)
        self.services.image = image
        self.services.groups.start(image)
        self.services.transactions.start(image)
        upkeep = Upkeep(self.logs, settings.upkeep, secret=self._secret())
        self.settings.subscribe(partial(self._change_upkeep, upkeep))
        self._run(upkeep.run())
        await self._listeners.bind(
            settings,
            self.services,
            clients=Dispatcher(spoken(unstable=settings.unstable_api_versions_enable)),
            controllers=Dispatcher(CONTROLLER_APIS),
        )
        await self._join(settings)
        for listener in self.listeners:
            await listener.serve()
            self._keep_running("idle connections", listener.pool.run)
        self._keep_running("response bytes", self._listeners.response_bytes.run)

    async def _join(self, settings: BrokerSettings) -> None:
        await self.controller.register(
            self._listeners.advertised(settings.advertised_controller_listeners), self._new_id()
        )
        self.lifecycle = lifecycle = self._make_lifecycle(settings)
        await lifecycle.register(
            self._listeners.advertised(settings.advertised_broker_listeners),
            settings.initial_broker_registration_timeout_ms / 1000,
        )
        if not await self._follower.until(self._knows_us, START_TIMEOUT_S):
            raise StartFailed(
                f"the metadata did not show this broker's registration within {START_TIMEOUT_S:.0f} s"
            )
        await lifecycle.become_active(START_TIMEOUT_S)
        if not await self._follower.until(self._lets_us_in, START_TIMEOUT_S):
            raise StartFailed(
                f"broker is still fenced after {START_TIMEOUT_S:.0f} s; check the controller's log"
            )
        self._keep_running("heartbeats", lifecycle.run)
        self._keep_running("directory reports", self._reports.run)
        self._reports.wake()

    def _registered(self, epoch: int) -> None:
        self.services.producer_ids.broker_epoch = epoch

    def _is_complete(self, image: MetadataImage) -> bool:
        """Whether the image has all records committed before the current leader was elected.

        A snapshot is published before the log after it is read. With that image, the logs of all topics that
        were created later would be set aside as strays.
        """
        return image.metadata_version > 0 and self.controller.shell.leader.id is not None

    def _knows_us(self, image: MetadataImage) -> bool:
        found = image.brokers.get(self._node_id)
        return found is not None and self.lifecycle is not None and found.epoch == self.lifecycle.epoch

    def _lets_us_in(self, image: MetadataImage) -> bool:
        return self._knows_us(image) and not image.brokers[self._node_id].fenced

    def _make_services(self) -> Services:
        ports, settings = self._ports, self.settings.now
        groups = GroupCoordinator(
            clock=ports.clock,
            rng=ports.rng,
            executor=ports.executor,
            tasks=self._isolated,
            settings=self.settings,
            logs=self.logs,
            replicas=self.replicas,
            image=self._follower.image,
        )
        return Services(
            node_id=self._node_id,
            cluster_id=self._cluster_id,
            clock=ports.clock,
            rng=ports.rng,
            executor=ports.executor,
            checksums=ports.checksums,
            tasks=self._isolated,
            settings=self.settings,
            logs=self.logs,
            replicas=self.replicas,
            quorum=self.controller.quorum,
            controller=self.controller,
            sessions=FetchSessions(
                settings.max_incremental_fetch_session_cache_slots, partial(ports.rng.randrange, 1, 2**31)
            ),
            producer_ids=ProducerIds(self.controller.call, self._node_id),
            groups=groups,
            offsets_topic=InternalTopic(self.controller.call, self.settings, self._isolated, offsets_topic),
            transactions=TransactionCoordinator(
                clock=ports.clock,
                executor=ports.executor,
                tasks=self._isolated,
                settings=self.settings,
                logs=self.logs,
                replicas=self.replicas,
                groups=groups,
                image=self._follower.image,
            ),
            transaction_topic=InternalTopic(
                self.controller.call, self.settings, self._isolated, transaction_topic
            ),
            image=self._follower.image,
        )

    def _make_lifecycle(self, settings: BrokerSettings) -> Lifecycle:
        # Nothing can have been lost only if all directories were closed cleanly.
        epochs = [None if one.clean is None else one.clean.broker_epoch for one in self.logs.directories]
        known = [epoch for epoch in epochs if epoch is not None]
        incarnation_id = self._new_id()
        self.controller.shell.controller.local_incarnation = incarnation_id
        lifecycle = Lifecycle(
            self.controller.call,
            node_id=self._node_id,
            cluster_id=self._cluster_id,
            incarnation_id=incarnation_id,
            rack=settings.broker_rack,
            log_dirs=[directory.id for directory in self.logs.directories if directory.offline is None],
            features=self.controller.supported_features(),
            previous_epoch=max(known) if len(known) == len(epochs) else -1,
            heartbeat_ms=settings.broker_heartbeat_interval_ms,
            metadata_offset=lambda: self._follower.image.offset,
            is_registered=lambda: self._node_id in self._follower.image.brokers,
            on_registered=self._registered,
        )
        for directory in self.logs.directories:
            directory.on_failure(partial(self._directory_failed, lifecycle))
        return lifecycle

    def _directory_failed(self, lifecycle: Lifecycle, failed: LogDirectory) -> None:
        lifecycle.directory_failed(failed.id)
        self.replicas.directory_failed(failed)
        # As in Kafka, stop in both cases: no directory is left, or the metadata log is on a failed disk.
        is_last = all(one.offline is not None for one in self.logs.directories)
        if is_last or failed.path == self.settings.now.metadata_log_dir:
            self._crashed(DirectoryOffline(failed.path, failed.offline or "it failed"))

    # Following the metadata and the settings

    def _change_upkeep(self, upkeep: Upkeep, settings: BrokerSettings, _changed: frozenset[str]) -> None:
        upkeep.settings = settings.upkeep
        self.logs.at_once = settings.num_recovery_threads_per_data_dir

    async def _carry_out(self, image: MetadataImage, changes: Changes) -> None:
        if any(resource.type == BROKER_RESOURCE for resource in changes.configs_changed):
            self.settings.take(image)
            self.replicas.reconfigure(image)
        await self.replicas.apply(image, changes)
        self.services.image = image
        for follow in (self.services.groups.follow, self.services.transactions.follow):
            try:
                follow(image, changes)
            except Exception as error:
                # A bug. As in Kafka, the broker continues with what it could apply.
                report_fault(logger, error, "metadata not applied offset=%d", image.offset)
        if changes.topics_changed:
            self._reports.wake()

    def _log_config(self, tp: TopicPartition) -> LogConfig:
        return topic_config(self._follower.latest, tp.topic, self._configure)

    def _configure(self, overrides: Any) -> LogConfig:
        return LogConfig.parse(overrides, self.settings.now.topic_defaults)

    # Tasks

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.start(work)

    def _keep_running(self, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._tasks.start(keep_running(name, run), name)

    def _crashed(self, error: BaseException) -> None:
        if isinstance(error, BarnabasError | OSError):
            # An expected error: the message is enough, without a stack trace.
            logger.critical("broker failed error=%s", error)
        else:
            logger.critical("broker failed error=%r", error, exc_info=error)
        if not self.failed.done():
            self.failed.set_exception(error)

    def _new_id(self) -> Uuid:
        return new_id(self._ports.rng)

    def _secret(self) -> bytes:
        return self._ports.rng.randbytes(16)

    # Stopping

    async def _close_coordinators(self) -> None:
        self.services.transactions.close()
        self.services.groups.close()

    async def stop(self, *, clean: bool = True) -> bool:
        """Finish requests, tell the controller, flush and close. Nothing is lost even if this is not clean.

        Return whether the stop was clean: the next start then needs no recovery.
        """
        if self._stopping:
            return False
        self._stopping = True
        for listener in self.listeners:
            listener.stop_accepting()
        # A failed step does not prevent the later ones: the logs are flushed in any case.
        took_all = True
        if clean and self.lifecycle is not None and self.settings.now.controlled_shutdown_enable:
            took_all &= await _taken("leave", self.lifecycle.leave(LEAVE_TIMEOUT_S))
        took_all &= await _taken("coordinators", self._close_coordinators())
        # All at once: they share the timeout.
        closing = (listener.close(FINISH_TIMEOUT_S) for listener in self.listeners)
        took_all &= await _taken("listeners", together(*closing))
        await self._isolated.close()
        await self._tasks.close()
        took_all &= await _taken("controller", self.controller.close())
        if clean:
            clean = await self.logs.close(-1 if self.lifecycle is None else self.lifecycle.epoch)
        else:
            self.logs.abandon()
        clean = clean and took_all
        if self.failed.done():
            self.failed.exception()
        logger.info("stopped node=%d clean=%s", self._node_id, clean)
        return clean


async def _taken(name: str, step: Coroutine[Any, Any, None]) -> bool:
    """Take one step of the stop; return False if it failed."""
    try:
        await step
    except (BarnabasError, OSError) as error:
        logger.error("stop failed step=%s error=%s", name, error)
        return False
    except Exception as error:
        report_fault(logger, error, "stop failed step=%s", name)
        return False
    return True


def _task_failed(error: BaseException) -> None:
    report_fault(logger, error, "task failed")
