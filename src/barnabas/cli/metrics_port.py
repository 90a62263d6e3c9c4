"""The metrics of a broker over HTTP, for --metrics-port. Imported only if they are asked for."""

from collections.abc import Sequence

from barnabas.base.metrics_server import MetricsServer
from barnabas.cli.addresses import CannotListen, why
from barnabas.cli.process_figures import ProcessReader
from barnabas.server.broker import Broker
from barnabas.server.observing import metrics_server


async def serve_metrics(broker: Broker, hosts: Sequence[str], port: int) -> MetricsServer:
    """Started, to be closed after the broker. An empty host is every address. CannotListen if it cannot."""
    server = metrics_server(broker, ProcessReader())
    try:
        await server.start(None if "" in hosts else list(hosts), port)
    except OSError as error:
        raise CannotListen(hosts[0], port, why(error)) from None
    return server
