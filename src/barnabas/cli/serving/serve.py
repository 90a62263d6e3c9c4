"""Run one node in this process until a signal stops it. Shared by `up` and `broker`.

The steps: check directories and ports before anything is written, start the broker, print `ready:`, wait for
a signal (signals.py), stop the broker. Every expected failure is reported as one line.
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

from barnabas.base.checksum import InlineChecksums, ThreadChecksums
from barnabas.base.clock import SystemClock
from barnabas.base.errors import BarnabasError
from barnabas.base.executor import Executor, ThreadExecutor
from barnabas.base.faults import place_of, report_fault
from barnabas.base.memory import freeze_existing_objects, keep_freed_memory, memory_bytes
from barnabas.base.processors import processors
from barnabas.base.trimming import Trimming
from barnabas.cli.serving import descriptor_limit
from barnabas.cli.serving.addresses import check_address, check_free, own_name
from barnabas.cli.serving.options import STOP_TIMEOUT_S
from barnabas.cli.serving.signals import SignalThread
from barnabas.raft.dynamic_voters import check_voters_are_fixed
from barnabas.server.broker import Broker
from barnabas.server.cluster.formatting import (
    NotFormatted,
    check_unused,
    format_storage,
    identity_of,
    metadata_lock,
    new_cluster_id,
)
from barnabas.server.network.outlet import busy_poll_ns
from barnabas.server.ports import DescriptorBudget, Ports
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.storage.directory.meta_properties import MetaProperties, check_owner
from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.files import FileSystem

logger = logging.getLogger("barnabas")

# How long an aborted start waits for threads that load logs.
THREADS_TIMEOUT_S: Final = 1.0
# Checksums get a thread of their own on machines with at least this many cores.
CORES_TO_SPARE: Final = 4


class UnexpectedError(BarnabasError):
    """A bug of ours that ends the broker. Its stack trace is in the log."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"unexpected error in {place_of(error)}: {error!r}; please report it with the log")


def serve(
    settings: BrokerSettings,
    *,
    format_if_new: bool,
    metrics_port: int | None = None,
    stop_timeout_s: float = STOP_TIMEOUT_S,
) -> int:
    """Start the node, print its addresses, stop it on a signal, and return the exit code."""
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
    """Open /dev/null at descriptors 0, 1 and 2 if they are closed.

    Otherwise a log file could get one of these numbers, and output for stderr would be written into it.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)


def _identity(fs: FileSystem, settings: BrokerSettings) -> MetaProperties | None:
    """Read the identity of the node from its directories; None if they are new. Changes nothing."""
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


def _run_loop(main: Coroutine[Any, Any, int]) -> int:
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    try:
        import uvloop

        factory = uvloop.new_event_loop
    except ImportError:
        logger.warning("uvloop is not installed; using the slower event loop of asyncio")
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)


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
        busy_poll_ns=busy_poll_ns(processors()),
        memory_bytes=memory_bytes(),
        descriptors=descriptors,
    )
    broker = Broker(settings, ports, cluster_id=cluster_id)
    broker.settings.subscribe(partial(_resize, executor))
    metrics = None
    code, has_served = 1, False
    try:
        if metrics_port is not None:
            # Imported only if requested. Started before the broker, to serve metrics during a long start.
            from barnabas.cli.serving.metrics import serve_metrics

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
        # Work that a serving broker has started, such as a compaction, runs to its end or to the deadline.
        if not executor.close(None if has_served else THREADS_TIMEOUT_S):
            _leave_threads(code)
    return code


def _callback_failed(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that reached the event loop. The broker keeps running."""
    error, message = context.get("exception"), context.get("message")
    if isinstance(error, BaseException):
        report_fault(logger, error, "callback failed message=%s", message)
    else:
        logger.error("event loop error message=%s", message)


def _leave_threads(code: int) -> None:
    """End the process while threads wait for a disk; a normal exit of Python would wait for them."""
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
    # A checksum thread needs a spare core. With two cores, clients and the event loop use both.
    return ThreadChecksums() if processors() >= CORES_TO_SPARE else InlineChecksums()


async def _started(broker: Broker, stop: "asyncio.Future[None]") -> bool:
    """Return whether the broker serves. If not, it failed or got a stop signal, and has stopped."""
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
    freeze_existing_objects()
    trimming = asyncio.create_task(Trimming().run(executor))
    try:
        _say_ready(broker.addresses)
        await asyncio.wait([stop, broker.failed], return_when=asyncio.FIRST_COMPLETED)
        clean = not broker.failed.done()
    finally:
        # The deadline also applies to a broker that stops because it failed.
        signals.deadline.begin()
        trimming.cancel()
        await asyncio.wait([trimming])
        clean = await broker.stop(clean=clean)
    return 0 if clean else 1


def _say_ready(addresses: list[str]) -> None:
    try:
        print(f"ready: {','.join(addresses)}", flush=True)
    except OSError as error:
        # The reader of our output is gone (`barnabas up | true`). The broker serves clients nevertheless.
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
    """Return the hosts of the client listeners; metrics are served on the same hosts."""
    return list(dict.fromkeys(endpoint.host for endpoint in settings.broker_listeners))


def _needs_hostname(settings: BrokerSettings) -> bool:
    return any(not endpoint.host for endpoint in settings.advertised_broker_listeners)
