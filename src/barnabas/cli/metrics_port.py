"""Serve the metrics of a broker over HTTP. Imported only with --metrics-port."""

from collections.abc import Sequence

from barnabas.base.metrics_server import MetricsServer
from barnabas.cli.addresses import CannotListen, why
from barnabas.cli.process_figures import ProcessReader
from barnabas.server.broker import Broker
from barnabas.server.metrics.http_server import metrics_server


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
