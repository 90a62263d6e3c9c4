"""`barnabas broker CONFIG`: run one node from the server.properties file of kafka-server-start.sh.

The log directories must be formatted, by `barnabas storage format` or by Kafka's own tool. When the broker
accepts connections it prints `ready: HOST:PORT,...` with every listener to stdout. SIGTERM and Ctrl-C stop it
cleanly.
"""

import argparse

from barnabas.cli.argument_parser import Misuse, split_setting
from barnabas.cli.serving.options import (
    add_serving_options,
    check_port,
    check_stop_timeout,
    log_as_asked,
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="CONFIG", help="server.properties of the node")
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="K=V",
        help="override a setting of the file; repeatable",
    )
    add_serving_options(parser)


def run(options: argparse.Namespace) -> int:
    check_port("--metrics-port", options.metrics_port)
    check_stop_timeout(options.stop_timeout)
    overrides = dict(split_setting("--override", one) for one in options.override)
    # Importing the server takes 0.2 s, which --help and invalid options need not wait for.
    from barnabas.base.settings import InvalidSetting
    from barnabas.cli.serving.serve import serve
    from barnabas.cli.serving.settings import BadFile, read_settings

    try:
        settings = read_settings(options.file, overrides)
    except InvalidSetting as wrong:
        if wrong.name in overrides:
            raise Misuse(f"--override {wrong}") from None
        raise BadFile(f"{options.file}: {wrong}") from None
    log_as_asked(options)
    return serve(
        settings,
        format_if_new=False,
        metrics_port=options.metrics_port,
        stop_timeout_s=options.stop_timeout,
    )
