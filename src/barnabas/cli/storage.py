"""`barnabas storage`: format log directories, and look at them, as kafka-storage.sh does it.

Flags, output and exit codes are its. What is not built is refused with the reason: voters in the metadata log
(--standalone, --initial-controllers), SCRAM credentials. Unlike Kafka's tool this one does not put a name on
a directory that holds partitions of nobody, and a file with a setting that does not exist is refused.
"""

import argparse
import random
import sys
from typing import Any, Final, NoReturn

from barnabas.base.clock import SystemClock
from barnabas.base.errors import BarnabasError
from barnabas.base.settings import InvalidSetting
from barnabas.cli import storage_features, storage_info
from barnabas.cli.settings_file import BadFile, read_settings
from barnabas.metadata.image import METADATA_VERSION
from barnabas.server.formatting import (
    AlreadyFormatted,
    directories_of,
    format_directories,
    identities_for,
    new_cluster_id,
    survey,
)
from barnabas.server.releases import chosen_levels, level_records, release_name
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.storage.directory.meta_properties import META_PROPERTIES, check_together
from barnabas.storage.disk import DiskFileSystem

_VOTERS: Final = "controller.quorum.voters"
_NOT_DYNAMIC: Final = (
    "makes a quorum whose voters are in the metadata log, which is not built yet; set "
    f"{_VOTERS}=ID@HOST:PORT in the configuration instead"
)


class CannotFormat(BarnabasError):
    """Why nothing was formatted. The message is the whole line."""


class Parser(argparse.ArgumentParser):
    """Kafka's tool exits with 1 when it is misused, and ours with it."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: error: {message}\n")


def arguments(parser: argparse.ArgumentParser) -> None:
    # The parsers of sub-commands are of the parser's own class.
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    info = commands.add_parser("info", help="what the log directories of a node say of themselves")
    _add_config(info)
    _add_format(commands)
    mapping = commands.add_parser("version-mapping", help="the feature levels of a release")
    mapping.add_argument("--release-version", "-r", metavar="VERSION", help="the release (the latest)")
    needs = commands.add_parser("feature-dependencies", help="what a feature level needs")
    needs.add_argument(
        "--feature",
        "-f",
        action="append",
        required=True,
        metavar="FEATURE=LEVEL",
        help="the feature and its level, as often as needed",
    )
    commands.add_parser("random-uuid", help="an id for a new cluster")


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", "-c", required=True, metavar="FILE", help="the node's server.properties")


def _add_format(commands: Any) -> None:
    parser = commands.add_parser("format", help="give the log directories of a node their identity")
    _add_config(parser)
    parser.add_argument("--cluster-id", "-t", required=True, metavar="ID", help="the cluster's id")
    parser.add_argument(
        "--ignore-formatted", "-g", action="store_true", help="pass over directories that are formatted"
    )
    parser.add_argument(
        "--release-version",
        "-r",
        metavar="VERSION",
        help="begin with the features of this release (the latest)",
    )
    parser.add_argument(
        "--feature", "-f", action="append", default=[], metavar="FEATURE=LEVEL", help="begin with this level"
    )
    parser.add_argument("--add-scram", "-S", action="append", metavar="CREDENTIAL", help="not built yet")
    quorum = parser.add_mutually_exclusive_group()
    quorum.add_argument("--standalone", "-s", action="store_true", help="not built yet")
    quorum.add_argument(
        "--no-initial-controllers",
        "-N",
        action="store_true",
        help=f"do without {_VOTERS} in the configuration",
    )
    quorum.add_argument("--initial-controllers", "-I", metavar="VOTERS", help="not built yet")


def run(options: argparse.Namespace) -> int:
    match options.command:
        case "random-uuid":
            print(new_cluster_id(random.SystemRandom()))
            return 0
        case "version-mapping":
            return storage_features.print_mapping(options.release_version)
        case "feature-dependencies":
            return storage_features.print_needs(options.feature)
        case "info":
            return storage_info.print_info(DiskFileSystem(), directories_of(_settings(options)))
        case command:
            assert command == "format", command
            _format(options)
            return 0


def _settings(options: argparse.Namespace) -> BrokerSettings:
    try:
        return read_settings(options.config)
    except InvalidSetting as wrong:
        raise BadFile(f"{options.config}: {wrong}") from None


def _format(options: argparse.Namespace) -> None:
    settings = _settings(options)
    _check_options(options, settings)
    levels = chosen_levels(options.release_version, storage_features.parse_levels(options.feature))
    fs = DiskFileSystem()
    empty = _to_format(fs, settings, options)
    if not empty:
        print("All of the log directories are already formatted.")
        return
    identities = identities_for(
        empty, cluster_id=options.cluster_id, node_id=settings.node_id, rng=random.SystemRandom()
    )
    release = release_name(levels[METADATA_VERSION])

    def begin(path: str) -> None:
        kind = "metadata" if path == settings.metadata_log_dir else "data"
        print(f"Formatting {kind} directory {path} with {METADATA_VERSION} {release}.")

    print(storage_features.describe(levels))
    format_directories(fs, identities, level_records(levels), now_ms=SystemClock().now_ms(), on_begin=begin)


def _check_options(options: argparse.Namespace, settings: BrokerSettings) -> None:
    if not options.cluster_id.strip():
        raise CannotFormat("--cluster-id must not be empty; `barnabas storage random-uuid` makes one")
    asked = "--standalone" if options.standalone else "--initial-controllers"
    if options.standalone or options.initial_controllers is not None:
        if settings.given.get(_VOTERS):
            raise CannotFormat(
                f"You cannot specify {_VOTERS} and format the node with --initial-controllers or "
                f"--standalone. {_VOTERS} alone is what works here."
            )
        raise CannotFormat(f"{asked} {_NOT_DYNAMIC}")
    if not settings.given.get(_VOTERS) and not options.no_initial_controllers:
        raise CannotFormat(
            f"{_VOTERS} is not set on this controller: set it, or specify --no-initial-controllers"
        )
    if options.add_scram:
        raise CannotFormat("--add-scram: SCRAM credentials are not built yet")


def _to_format(fs: DiskFileSystem, settings: BrokerSettings, options: argparse.Namespace) -> list[str]:
    """The directories without an owner. Those that have one must have the right one."""
    found = survey(fs, directories_of(settings))
    check_together(found.formatted)
    for path, meta in found.formatted.items():
        for name, expected, read in (
            ("cluster.id", options.cluster_id, meta.cluster_id),
            ("node.id", settings.node_id, meta.node_id),
        ):
            if expected != read:
                where = f"{path}/{META_PROPERTIES}"
                raise CannotFormat(f"Invalid {name} in: {where}. Expected {expected}, but read {read}")
    if found.formatted and not options.ignore_formatted:
        raise AlreadyFormatted(next(iter(found.formatted)))
    for path in found.failed:
        print(f"I/O error trying to read log directory {path}. Ignoring...")
    if not found.formatted and not found.empty:
        raise CannotFormat("No available log directories to format.")
    return [path for path in directories_of(settings) if path in found.empty]
