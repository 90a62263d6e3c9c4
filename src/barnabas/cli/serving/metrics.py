"""Serve the metrics of a broker over HTTP, with figures of this process. Imported only with --metrics-port.

The figures come from Linux' /proc where it exists.
"""

import os
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from barnabas.base.metrics_server import MetricsServer
from barnabas.cli.serving.addresses import CannotListen, why
from barnabas.server.broker import Broker
from barnabas.server.metrics.http_server import metrics_server
from barnabas.server.metrics.sources import ProcessFigures

_PROC: Final = Path("/proc/self")
_RESIDENT_PAGES_AT: Final = 1
_KILOBYTE: Final = 1024


async def serve_metrics(broker: Broker, hosts: Sequence[str], port: int) -> MetricsServer:
    """Start the metrics server; close it after the broker. An empty host stands for all addresses.

    CannotListen if an address cannot be bound.
    """
    server = metrics_server(broker, ProcessReader())
    try:
        await server.start(None if "" in hosts else list(hosts), port)
    except OSError as error:
        raise CannotListen(hosts[0], port, why(error)) from None
    return server


class ProcessReader:
    """Created when the process starts; called for each scrape of the metrics."""

    def __init__(self) -> None:
        self._started_at = time.time()
        self._page_bytes = resource.getpagesize()

    def __call__(self) -> ProcessFigures:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return ProcessFigures(
            resident_bytes=self._resident_bytes(used),
            cpu_seconds=used.ru_utime + used.ru_stime,
            started_at_seconds=self._started_at,
            open_files=_open_files(),
            open_files_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        )

    def _resident_bytes(self, used: resource.struct_rusage) -> int:
        try:
            pages = (_PROC / "statm").read_text().split()[_RESIDENT_PAGES_AT]
        except OSError:
            # Without /proc the best known figure is the peak.
            return used.ru_maxrss * _KILOBYTE
        return int(pages) * self._page_bytes


def _open_files() -> int:
    try:
        return len(os.listdir(_PROC / "fd"))
    except OSError:
        return 0
