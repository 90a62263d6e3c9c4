"""`barnabas up`: a local cluster in the foreground, until Ctrl-C.

The directory is made and formatted by the first start; a directory of Kafka's is taken as it is. When every
broker serves, `ready: HOST:PORT,...` is printed to stdout. Ctrl-C and SIGTERM are a clean stop.
"""

import argparse
import logging
import os
from typing import Final

from barnabas.base.settings import InvalidSetting
from barnabas.cli.addresses import ALL_IPV4, ALL_IPV6, own_name
from barnabas.cli.misuse import Misuse, split_setting
from barnabas.cli.serve import add_serving_options, check_port, log_as_asked, serve
from barnabas.server.formatting import read_identity
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.storage.disk import DiskFileSystem

logger = logging.getLogger("barnabas")

PORT: Final = 9092
HOST: Final = "127.0.0.1"
NODE_ID: Final = 1

# What `up` decides by itself, and how to have it otherwise.
_BROKER: Final = "`barnabas broker` takes a whole server.properties"
DECIDED: Final = {
    "listeners": f"--host and --port say where to listen; for more than one listener {_BROKER}",
    "log.dirs": f"--dir says where data is kept; for several directories {_BROKER}",
    "log.dir": "--dir says where data is kept",
    "metadata.log.dir": f"--dir says where data is kept; for several directories {_BROKER}",
    "process.roles": f"every node is broker and controller; {_BROKER}",
    "controller.listener.names": f"`up` chooses the controllers' listener; {_BROKER}",
    "controller.quorum.voters": f"`up` chooses the voters; {_BROKER}",
    "controller.quorum.bootstrap.servers": f"`up` chooses the voters; {_BROKER}",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dir", metavar="DIR", help="where data is kept (a temporary directory, removed at the end)"
    )
    parser.add_argument("--port", type=int, default=PORT, help=f"the broker's port, 0 for any ({PORT})")
    parser.add_argument(
        "--host", default=HOST, help=f"the address or name to listen on, {ALL_IPV4} for all ({HOST})"
    )
    parser.add_argument("--brokers", type=int, default=1, metavar="N", help="how many brokers (1)")
    parser.add_argument("--controllers", type=int, default=1, metavar="N", help="how many controllers (1)")
    parser.add_argument(
        "--config", action="append", default=[], metavar="K=V", help="a broker setting, as often as needed"
    )
    add_serving_options(parser)


def run(options: argparse.Namespace) -> int:
    for name in ("brokers", "controllers"):
        _check_count(name, getattr(options, name))
    check_port("--port", options.port)
    check_port("--metrics-port", options.metrics_port)
    given = dict(split_setting("--config", one) for one in options.config)
    for name in given:
        if name in DECIDED:
            raise Misuse(f"--config {name}: {DECIDED[name]}")
    if options.dir is not None:
        return _up(options, given, _directory(options.dir), is_temporary=False)
    # Only who needs it waits for its import.
    import tempfile

    with tempfile.TemporaryDirectory(prefix="barnabas-") as temporary:
        return _up(options, given, temporary, is_temporary=True)


def _check_count(name: str, count: int) -> None:
    if count < 1:
        raise Misuse(f"--{name} {count}: must be at least 1")
    if count > 1:
        raise Misuse(
            f"--{name} {count}: only one can be started so far, clusters of several are not built yet"
        )


def _directory(text: str) -> str:
    directory = os.path.abspath(text)
    if not text or "," in directory or directory == "/":
        # Log directories are a list with commas in between, so that is how far their names can go.
        raise Misuse(f"--dir {text}: must be a directory of its own, without a comma in its name")
    return directory


def _up(options: argparse.Namespace, given: dict[str, str], directory: str, *, is_temporary: bool) -> int:
    try:
        settings = BrokerSettings.parse(make_settings(options, given, directory))
    except InvalidSetting as wrong:
        raise Misuse(f"--config {wrong}" if wrong.name in given else str(wrong)) from None
    log_as_asked(options)
    if is_temporary:
        logger.info("data is temporary, removed at the end dir=%s", directory)
    return serve(settings, format_if_new=True, metrics_port=options.metrics_port)


def make_settings(options: argparse.Namespace, given: dict[str, str], directory: str) -> dict[str, str]:
    node_id = given.get("node.id") or given.get("broker.id") or str(_node_id(directory))
    host = options.host.strip("[]")
    settings = {
        "process.roles": "broker,controller",
        "node.id": node_id,
        "listeners": f"PLAINTEXT://{_address(host, options.port)},CONTROLLER://{HOST}:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{node_id}@{HOST}:0",
        "log.dirs": directory,
        # Kafka's defaults are three and two, and there is one broker to have them.
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    if host in (ALL_IPV4, ALL_IPV6):
        # Nobody can connect to that. Kafka would have it set by hand.
        settings["advertised.listeners"] = f"PLAINTEXT://{_address(own_name(), options.port)}"
    return settings | given


def _node_id(directory: str) -> int:
    """That of the directory, if it has one."""
    identity = read_identity(DiskFileSystem(), [directory])
    return NODE_ID if identity is None else identity.node_id


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
