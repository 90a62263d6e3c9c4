"""`barnabas up`: a local cluster in the foreground, until Ctrl-C.

The first start creates and formats the directory; a directory of Kafka's is used as it is. When every broker
accepts connections, `up` prints `ready: HOST:PORT,...` to stdout. Ctrl-C and SIGTERM stop it cleanly.
"""

import argparse
import logging
import os
from typing import Final

from barnabas.cli.argument_parser import Misuse, split_setting
from barnabas.cli.serving.options import (
    add_serving_options,
    check_port,
    check_stop_timeout,
    log_as_asked,
)

logger = logging.getLogger("barnabas")

PORT: Final = 9092
HOST: Final = "127.0.0.1"

# Settings that `up` computes itself, and how the user can influence them.
_BROKER: Final = "`barnabas broker` takes a whole server.properties"
DECIDED: Final = {
    "listeners": f"use --host and --port; for more than one listener {_BROKER}",
    "log.dirs": f"use --dir; for several directories {_BROKER}",
    "log.dir": "use --dir",
    "metadata.log.dir": f"use --dir; for several directories {_BROKER}",
    "process.roles": f"every node is broker and controller; {_BROKER}",
    "controller.listener.names": f"`up` chooses the controllers' listener; {_BROKER}",
    "controller.quorum.voters": f"`up` chooses the voters; {_BROKER}",
    "controller.quorum.bootstrap.servers": f"`up` chooses the voters; {_BROKER}",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dir", metavar="DIR", help="data directory (default: a temporary one, removed on exit)"
    )
    parser.add_argument(
        "--port", type=int, default=PORT, help=f"port of the broker; 0: any free port (default: {PORT})"
    )
    parser.add_argument(
        "--host", default=HOST, help=f"address or name to listen on; 0.0.0.0: all (default: {HOST})"
    )
    parser.add_argument("--brokers", type=int, default=1, metavar="N", help="number of brokers (default: 1)")
    parser.add_argument(
        "--controllers", type=int, default=1, metavar="N", help="number of controllers (default: 1)"
    )
    parser.add_argument(
        "--config", action="append", default=[], metavar="K=V", help="broker setting; repeatable"
    )
    add_serving_options(parser)


def run(options: argparse.Namespace) -> int:
    for name in ("brokers", "controllers"):
        _check_count(name, getattr(options, name))
    check_port("--port", options.port)
    check_port("--metrics-port", options.metrics_port)
    check_stop_timeout(options.stop_timeout)
    given = dict(split_setting("--config", one) for one in options.config)
    for name in given:
        if name in DECIDED:
            raise Misuse(f"--config {name}: {DECIDED[name]}")
    if options.dir is not None:
        return _up(options, given, _directory(options.dir), is_temporary=False)
    import tempfile

    with tempfile.TemporaryDirectory(prefix="barnabas-") as temporary:
        return _up(options, given, temporary, is_temporary=True)


def _check_count(name: str, count: int) -> None:
    if count < 1:
        raise Misuse(f"--{name} {count}: must be at least 1")
    if count > 1:
        raise Misuse(f"--{name} {count}: must be 1, because clusters of several nodes are not built yet")


def _directory(text: str) -> str:
    directory = os.path.abspath(text)
    if not text or "," in directory or directory == "/":
        # log.dirs is a comma-separated list, so a path cannot contain a comma.
        raise Misuse(f"--dir {text}: must be a directory other than /, without a comma in its path")
    return directory


def _up(options: argparse.Namespace, given: dict[str, str], directory: str, *, is_temporary: bool) -> int:
    # Importing the server takes 0.2 s, which --help and invalid options need not wait for.
    from barnabas.base.settings import InvalidSetting
    from barnabas.cli.serving.serve import serve
    from barnabas.cli.serving.settings import make_settings
    from barnabas.server.settings.broker_settings import BrokerSettings

    try:
        settings = BrokerSettings.parse(make_settings(options, given, directory))
    except InvalidSetting as wrong:
        raise Misuse(f"--config {wrong}" if wrong.name in given else str(wrong)) from None
    log_as_asked(options)
    if is_temporary:
        logger.info("data directory is temporary dir=%s", directory)
    return serve(
        settings,
        format_if_new=True,
        metrics_port=options.metrics_port,
        stop_timeout_s=options.stop_timeout,
    )
