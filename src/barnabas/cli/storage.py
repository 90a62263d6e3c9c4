"""`barnabas storage`: format and describe log directories, with the flags and output of kafka-storage.sh.

Options that need voters in the metadata log (--standalone, --initial-controllers) or SCRAM are rejected with
an explanation. Two things are stricter than in Kafka's tool: a directory that holds partitions but has no
identity is not formatted, and a configuration with an unknown setting is refused.
"""

import argparse
from typing import Any, Final

from barnabas.cli.argument_parser import Parser

_VOTERS: Final = "controller.quorum.voters"


def arguments(parser: Parser) -> None:
    # add_subparsers() gives subcommands the class of this parser.
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    info = commands.add_parser("info", help="describe the log directories of a node")
    _add_config(info)
    _add_format(commands)
    mapping = commands.add_parser("version-mapping", help="print the feature levels of a release")
    mapping.add_argument("--release-version", "-r", metavar="VERSION", help="release (default: the latest)")
    needs = commands.add_parser("feature-dependencies", help="print what a feature level requires")
    needs.add_argument(
        "--feature",
        "-f",
        action="append",
        required=True,
        metavar="FEATURE=LEVEL",
        help="feature and its level; repeatable",
    )
    commands.add_parser("random-uuid", help="print a random id for a new cluster")


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", "-c", required=True, metavar="FILE", help="server.properties of the node")


def _add_format(commands: Any) -> None:
    parser = commands.add_parser("format", help="format the log directories of a node")
    _add_config(parser)
    parser.add_argument("--cluster-id", "-t", required=True, metavar="ID", help="id of the cluster")
    parser.add_argument(
        "--ignore-formatted", "-g", action="store_true", help="skip directories that are already formatted"
    )
    parser.add_argument(
        "--release-version",
        "-r",
        metavar="VERSION",
        help="initial features: those of this release (default: the latest)",
    )
    parser.add_argument(
        "--feature",
        "-f",
        action="append",
        default=[],
        metavar="FEATURE=LEVEL",
        help="initial feature level; repeatable",
    )
    parser.add_argument("--add-scram", "-S", action="append", metavar="CREDENTIAL", help="not built yet")
    quorum = parser.add_mutually_exclusive_group()
    quorum.add_argument("--standalone", "-s", action="store_true", help="not built yet")
    quorum.add_argument(
        "--no-initial-controllers",
        "-N",
        action="store_true",
        help=f"allow a configuration without {_VOTERS}",
    )
    quorum.add_argument("--initial-controllers", "-I", metavar="VOTERS", help="not built yet")


def run(options: argparse.Namespace) -> int:
    # Importing the server takes 0.2 s, which --help and invalid options need not wait for.
    from barnabas.cli.directories import features, formatting, info
    from barnabas.server.cluster.formatting import directories_of
    from barnabas.storage.disk import DiskFileSystem

    match options.command:
        case "random-uuid":
            print(formatting.random_uuid())
            return 0
        case "version-mapping":
            return features.print_mapping(options.release_version)
        case "feature-dependencies":
            return features.print_needs(options.feature)
        case "info":
            settings = formatting.settings_of_node(options)
            return info.print_info(DiskFileSystem(), directories_of(settings))
        case command:
            assert command == "format", command
            formatting.format_node(options)
            return 0
