"""`barnabas broker CONFIG`: one node from a server.properties file, as kafka-server-start.sh takes it.

The log directories must have been formatted (`barnabas storage format`, or Kafka's own tool). When it serves,
`ready: HOST:PORT,...` is printed to stdout, with every listener. SIGTERM and Ctrl-C are a clean stop.
"""

import argparse

from barnabas.base.settings import InvalidSetting
from barnabas.cli.misuse import Misuse, split_setting
from barnabas.cli.serve import add_serving_options, check_port, log_as_asked, serve
from barnabas.cli.settings_file import BadFile, read_settings


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="CONFIG", help="the node's server.properties")
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="K=V",
        help="a setting in the place of the file's, as often as needed",
    )
    add_serving_options(parser)


def run(options: argparse.Namespace) -> int:
    check_port("--metrics-port", options.metrics_port)
    overrides = dict(split_setting("--override", one) for one in options.override)
    try:
        settings = read_settings(options.file, overrides)
    except InvalidSetting as wrong:
        if wrong.name in overrides:
            raise Misuse(f"--override {wrong}") from None
        raise BadFile(f"{options.file}: {wrong}") from None
    log_as_asked(options)
    return serve(settings, format_if_new=False, metrics_port=options.metrics_port)
