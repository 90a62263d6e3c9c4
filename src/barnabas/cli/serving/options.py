"""Options shared by `up` and `broker`. Imports no part of the server, so that --help is fast."""

import argparse
import logging
from typing import Final

from barnabas.base.structured_log import LogFormat, log_to
from barnabas.cli.argument_parser import Misuse

LEVELS: Final = ("debug", "info", "warning", "error")
PORT_MAX: Final = 65_535
# A clean stop gives the controller 5 s and clients 5 s; the rest is for the disk.
STOP_TIMEOUT_S: Final = 30
STOP_TIMEOUT_S_MAX: Final = 3_600


def add_serving_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="serve Prometheus metrics over HTTP on this port (0: any free port)",
    )
    parser.add_argument(
        "--stop-timeout",
        type=int,
        default=STOP_TIMEOUT_S,
        metavar="SECONDS",
        help=f"longest time that a clean stop may take (default: {STOP_TIMEOUT_S})",
    )
    parser.add_argument("--log-level", default="info", choices=LEVELS, help="log level (default: info)")
    parser.add_argument(
        "--log-format",
        default="text",
        choices=[str(one) for one in LogFormat],
        help="log format: text or json (default: text)",
    )


def check_port(option: str, port: int | None) -> None:
    if port is not None and not 0 <= port <= PORT_MAX:
        raise Misuse(f"{option} {port}: must be from 0 to {PORT_MAX}")


def check_stop_timeout(seconds: int) -> None:
    if not 1 <= seconds <= STOP_TIMEOUT_S_MAX:
        raise Misuse(f"--stop-timeout {seconds}: must be from 1 to {STOP_TIMEOUT_S_MAX}")


def log_as_asked(options: argparse.Namespace) -> None:
    level = logging.getLevelNamesMapping()[options.log_level.upper()]
    log_to(kind=LogFormat(options.log_format), level=level)
