"""Run one node in this process until it is told to stop: what `up` and `broker` have in common.

From settings to the exit code: look at the directories and ports before anything is touched, start the
broker, say `ready:`, wait for a signal (signals.py), stop it. Every failure that can be foreseen is one line.
"""

import asyncio
import logging
import os
import random
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final

from barnabas.base.allocator import keep_freed_memory
from barnabas.base.checksum import InlineChecksums, ThreadChecksums
from barnabas.base.clock import SystemClock
from barnabas.base.errors import BarnabasError
from barnabas.base.executor import Executor, ThreadExecutor
from barnabas.base.faults import place_of, report_fault
from barnabas.base.garbage import leave_out_what_is_there
from barnabas.base.memory import memory_bytes
from barnabas.base.processors import processors
from barnabas.base.trimming import Trimming
from barnabas.cli import descriptor_limit
from barnabas.cli.addresses import check_address, check_free, own_name
from barnabas.cli.serving_options import STOP_TIMEOUT_S
from barnabas.cli.signals import SignalThread
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

# How long a start that was given up waits for threads that load logs.
THREADS_TIMEOUT_S: Final = 1.0
# From so many on a thread of its own for checksums is worth it.
CORES_TO_SPARE: Final = 4


class UnexpectedError(BarnabasError):
    """A mistake of ours that ends the broker. The log has its stack."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"unexpected error in {place_of(error)}: {error!r}; please report it with the log")


def serve(
    settings: BrokerSettings,
    *,
    format_if_new: bool,
    metrics_port: int | None = None,
    stop_timeout_s: float = STOP_TIMEOUT_S,
) -> int:
    """Start the node, say where it is, and stop it when a signal comes. The exit code."""
    _open_standard_files()
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
        try:
            return _run_loop(_serve(settings, fs, descriptors, cluster_id, metrics_port, stop_timeout_s))
        except (BarnabasError, OSError):
            raise
        except Exception as error:
            report_fault(logger, error, "broker failed")
            raise UnexpectedError(error) from None
        finally:
            _discard_unwritten()


def _open_standard_files() -> None:
    """Have something at 0, 1 and 2: of a process that was started without them a log would get the number,
    and what is meant for stderr would be written into it."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)


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
        logger.warning("uvloop is not installed; using the slower event loop of asyncio")
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(story)


async def _serve(
    settings: BrokerSettings,
    fs: FileSystem,
    descriptors: DescriptorBudget,
    cluster_id: str,
    metrics_port: int | None,
    stop_timeout_s: float,
) -> int:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_callback_failed)
    stop: asyncio.Future[None] = loop.create_future()
    signals = SignalThread(
        loop.call_soon_threadsafe, partial(stop.set_result, None), timeout_s=stop_timeout_s
    )
    executor, checksums = ThreadExecutor(settings.blocking_threads), _checksums()
    ports = Ports(
        fs=fs,
        clock=SystemClock(),
        executor=executor,
        checksums=checksums,
        rng=random.SystemRandom(),
        hostname=own_name() if _needs_hostname(settings) else "localhost",
        awake_ns=awake_ns_with(processors()),
        memory_bytes=memory_bytes(),
        descriptors=descriptors,
    )
    broker = Broker(settings, ports, cluster_id=cluster_id)
    broker.settings.subscribe(partial(_resize, executor))
    metrics = None
    code, has_served = 1, False
    try:
        if metrics_port is not None:
            # Only who asks for it waits for its import. It also tells of a start that takes long.
            from barnabas.cli.metrics_port import serve_metrics

            metrics = await serve_metrics(broker, _hosts(settings), metrics_port)
        if await _started(broker, stop):
            has_served = True
            descriptor_limit.report(descriptors)
            code = await _serve_until(stop, broker, signals, executor)
        else:
            code = 1 if broker.failed.done() else 0
    finally:
        if metrics is not None:
            await metrics.close()
        checksums.close()
        # Work that a serving broker has begun, such as a compaction, goes on to its end or to the deadline.
        if not executor.close(None if has_served else THREADS_TIMEOUT_S):
            _leave_threads(code)
    return code


def _callback_failed(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that reached the event loop. Everything else goes on."""
    error, message = context.get("exception"), context.get("message")
    if isinstance(error, BaseException):
        report_fault(logger, error, "callback failed message=%s", message)
    else:
        logger.error("event loop error message=%s", message)


def _leave_threads(code: int) -> None:
    """End the process although threads wait for a disk: Python would wait for them at its end."""
    logger.warning("stopped without waiting for disk threads")
    error = sys.exc_info()[1]
    if error is not None:
        print(f"barnabas: {error}", file=sys.stderr)
    logging.shutdown()
    os._exit(code)


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


async def _serve_until(
    stop: "asyncio.Future[None]", broker: Broker, signals: SignalThread, executor: Executor
) -> int:
    clean = False
    leave_out_what_is_there()
    trimming = asyncio.create_task(Trimming().run(executor))
    try:
        _say_ready(broker.addresses)
        await asyncio.wait([stop, broker.failed], return_when=asyncio.FIRST_COMPLETED)
        clean = not broker.failed.done()
    finally:
        # A broker that stops because it failed has no more time than one that was told to.
        signals.deadline.begin()
        trimming.cancel()
        await asyncio.wait([trimming])
        clean = await broker.stop(clean=clean)
    return 0 if clean else 1


def _say_ready(addresses: list[str]) -> None:
    try:
        print(f"ready: {','.join(addresses)}", flush=True)
    except OSError as error:
        # The reader of our output is gone (`barnabas up | true`). Clients are served all the same.
        logger.warning("ready line not written error=%s", error.strerror)


def _discard_unwritten() -> None:
    """Discard unwritten output. Writing it at exit would fail again and change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _hosts(settings: BrokerSettings) -> list[str]:
    """Where clients come in, and so the place for metrics too."""
    return list(dict.fromkeys(endpoint.host for endpoint in settings.broker_listeners))


def _needs_hostname(settings: BrokerSettings) -> bool:
    return any(not endpoint.host for endpoint in settings.advertised_broker_listeners)
