"""Run one node in this process until it is told to stop: what `up` and `broker` have in common.

From settings to the exit code: look at the directories and ports before anything is touched, start the
broker, say `ready:`, wait for a signal, stop it. Every failure that can be foreseen is one line.
"""

import asyncio
import logging
import os
import random
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final

from barnabas.base.allocator import keep_freed_memory
from barnabas.base.checksum import InlineChecksums, ThreadChecksums
from barnabas.base.clock import SystemClock
from barnabas.base.executor import ThreadExecutor
from barnabas.base.garbage import leave_out_what_is_there
from barnabas.base.processors import processors
from barnabas.cli import descriptor_limit
from barnabas.cli.addresses import check_address, check_free, own_name
from barnabas.raft.dynamic_voters import check_voters_are_fixed
from barnabas.server.broker import Broker
from barnabas.server.descriptors import DescriptorBudget
from barnabas.server.formatting import (
    NotFormatted,
    check_unused,
    format_storage,
    identity_of,
    metadata_lock,
    new_cluster_id,
)
from barnabas.server.network.vigil import awake_ns_with
from barnabas.server.ports import Ports
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.storage.directory.meta_properties import MetaProperties, check_owner
from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.files import FileSystem

logger = logging.getLogger("barnabas")

# A terminal's Ctrl-C reaches a wrapper and us, and the wrapper passes it on: two signals this close are one.
ONE_PRESS_S: Final = 0.5
# From so many on a thread of its own for checksums is worth it.
CORES_TO_SPARE: Final = 4


def serve(settings: BrokerSettings, *, format_if_new: bool, metrics_port: int | None = None) -> int:
    """Start the node, say where it is, and stop it when a signal comes. The exit code."""
    keep_freed_memory()
    descriptors = descriptor_limit.budget()
    fs = DiskFileSystem(open_files_max=descriptors.logs)
    identity = _identity(fs, settings)
    if identity is None and not format_if_new:
        raise NotFormatted(settings.log_dirs)
    check_free((*settings.broker_listeners, *settings.controller_listeners))
    for host in _hosts(settings) if metrics_port is not None else ():
        check_address(host, metrics_port or 0)
    cluster_id = _format(fs, settings) if identity is None else identity.cluster_id
    with metadata_lock(fs, settings):
        descriptor_limit.report(descriptors)
        return _run_loop(_serve(settings, fs, descriptors, cluster_id, metrics_port))


def _identity(fs: FileSystem, settings: BrokerSettings) -> MetaProperties | None:
    """Who we are by our directories; None if they are new. What cannot be served is left as it is."""
    identity = identity_of(fs, settings)
    if identity is not None:
        home = settings.metadata_log_dir
        check_owner(home, identity, cluster_id=identity.cluster_id, node_id=settings.node_id)
        check_voters_are_fixed(fs, home)
        check_unused(fs, home)
    return identity


def _format(fs: FileSystem, settings: BrokerSettings) -> str:
    rng = random.SystemRandom()
    cluster_id = new_cluster_id(rng)
    paths = format_storage(fs, settings, cluster_id=cluster_id, rng=rng, now_ms=SystemClock().now_ms())
    logger.info("formatted dir=%s cluster=%s node=%d", ",".join(paths), cluster_id, settings.node_id)
    return cluster_id


def _run_loop(story: Coroutine[Any, Any, int]) -> int:
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    try:
        import uvloop

        factory = uvloop.new_event_loop
    except ImportError:
        logger.warning("uvloop is not installed: the loop of Python itself is slower")
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(story)


async def _serve(
    settings: BrokerSettings,
    fs: FileSystem,
    descriptors: DescriptorBudget,
    cluster_id: str,
    metrics_port: int | None,
) -> int:
    stop = _stop_signal()
    executor, checksums = ThreadExecutor(settings.blocking_threads), _checksums()
    ports = Ports(
        fs=fs,
        clock=SystemClock(),
        executor=executor,
        checksums=checksums,
        rng=random.SystemRandom(),
        hostname=own_name() if _needs_hostname(settings) else "localhost",
        awake_ns=awake_ns_with(processors()),
        descriptors=descriptors,
    )
    broker = Broker(settings, ports, cluster_id=cluster_id)
    broker.settings.subscribe(partial(_resize, executor))
    metrics = None
    try:
        if metrics_port is not None:
            # Only who asks for it waits for its import. It also tells of a start that takes long.
            from barnabas.cli.metrics_port import serve_metrics

            metrics = await serve_metrics(broker, _hosts(settings), metrics_port)
        if not await _started(broker, stop):
            return 1 if broker.failed.done() else 0
        return await _serve_until(stop, broker)
    finally:
        if metrics is not None:
            await metrics.close()
        executor.close()
        checksums.close()


def _resize(executor: ThreadExecutor, settings: BrokerSettings, changed: frozenset[str]) -> None:
    if changed & {"num_io_threads", "background_threads"}:
        executor.resize(settings.blocking_threads)


def _checksums() -> ThreadChecksums | InlineChecksums:
    # A thread pays where a core has time to spare for it. On two, clients and the loop have both of them.
    return ThreadChecksums() if processors() >= CORES_TO_SPARE else InlineChecksums()


async def _started(broker: Broker, stop: "asyncio.Future[None]") -> bool:
    """Whether it serves. If not, it failed or was told to stop before it did, and has stopped."""
    starting = asyncio.ensure_future(broker.start())
    await asyncio.wait([starting, stop, broker.failed], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
    with suppress(asyncio.CancelledError):
        await starting
        return True
    return False


async def _serve_until(stop: "asyncio.Future[None]", broker: Broker) -> int:
    clean = True
    try:
        leave_out_what_is_there()
        print(f"ready: {','.join(broker.addresses)}", flush=True)
        await asyncio.wait([stop, broker.failed], return_when=asyncio.FIRST_COMPLETED)
        clean = not broker.failed.done()
        return 0 if clean else 1
    finally:
        await broker.stop(clean=clean)


def _hosts(settings: BrokerSettings) -> list[str]:
    """Where clients come in, and so the place for metrics too."""
    return list(dict.fromkeys(endpoint.host for endpoint in settings.broker_listeners))


def _needs_hostname(settings: BrokerSettings) -> bool:
    return any(not endpoint.host for endpoint in settings.advertised_broker_listeners)


class StopSignals:
    """The first one asks for a clean stop. A later one, if that takes too long, ends the process as it is."""

    def __init__(
        self, stop: Callable[[], None], end: Callable[[int], None], now: Callable[[], float]
    ) -> None:
        self._stop = stop
        self._end = end
        self._now = now
        self._first_at: float | None = None

    def told(self, number: int) -> None:
        name = signal.Signals(number).name
        if self._first_at is None:
            self._first_at = self._now()
            logger.info("stopping signal=%s", name)
            self._stop()
        elif self._now() - self._first_at >= ONE_PRESS_S:
            # Like a crash: what was acknowledged is not lost, and the next start recovers the logs.
            logger.warning("stopped at once signal=%s", name)
            self._end(1)


def _stop_signal() -> "asyncio.Future[None]":
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[None] = loop.create_future()
    signals = StopSignals(partial(stop.set_result, None), os._exit, loop.time)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, signals.told, number)
    return stop
