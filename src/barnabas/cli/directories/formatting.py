"""`barnabas storage format`: format log directories, with the output of Kafka's tool."""

import argparse
import random
from typing import Final

from barnabas.base.clock import SystemClock
from barnabas.base.errors import BarnabasError
from barnabas.base.settings import InvalidSetting
from barnabas.cli.directories import features
from barnabas.cli.serving.settings import BadFile, read_settings
from barnabas.metadata.image import METADATA_VERSION
from barnabas.server.cluster.formatting import (
    AlreadyFormatted,
    directories_of,
    format_directories,
    identities_for,
    new_cluster_id,
    survey,
)
from barnabas.server.cluster.releases import chosen_levels, level_records, release_name
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.storage.directory.meta_properties import META_PROPERTIES, check_together
from barnabas.storage.disk import DiskFileSystem

_VOTERS: Final = "controller.quorum.voters"
_NOT_DYNAMIC: Final = (
    "needs voters in the metadata log, which are not built yet; set "
    f"{_VOTERS}=ID@HOST:PORT in the configuration instead"
)


class CannotFormat(BarnabasError):
    """Nothing was formatted. The message is the whole line."""


def random_uuid() -> str:
    return new_cluster_id(random.SystemRandom())


def settings_of_node(options: argparse.Namespace) -> BrokerSettings:
    try:
        return read_settings(options.config)
    except InvalidSetting as wrong:
        raise BadFile(f"{options.config}: {wrong}") from None


def format_node(options: argparse.Namespace) -> None:
    settings = settings_of_node(options)
    _check_options(options, settings)
    levels = chosen_levels(options.release_version, features.parse_levels(options.feature))
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

    print(features.describe(levels))
    format_directories(fs, identities, level_records(levels), now_ms=SystemClock().now_ms(), on_begin=begin)


def _check_options(options: argparse.Namespace, settings: BrokerSettings) -> None:
    if not options.cluster_id.strip():
        raise CannotFormat("--cluster-id must not be empty; `barnabas storage random-uuid` generates one")
    asked = "--standalone" if options.standalone else "--initial-controllers"
    if options.standalone or options.initial_controllers is not None:
        if settings.given.get(_VOTERS):
            raise CannotFormat(
                f"You cannot specify {_VOTERS} and format the node with --initial-controllers or "
                f"--standalone. Use {_VOTERS} alone."
            )
        raise CannotFormat(f"{asked} {_NOT_DYNAMIC}")
    if not settings.given.get(_VOTERS) and not options.no_initial_controllers:
        raise CannotFormat(
            f"{_VOTERS} is not set on this controller: set it, or specify --no-initial-controllers"
        )
    if options.add_scram:
        raise CannotFormat("--add-scram: SCRAM credentials are not built yet")


def _to_format(fs: DiskFileSystem, settings: BrokerSettings, options: argparse.Namespace) -> list[str]:
    """Return the unformatted directories. Formatted ones must belong to this cluster and node."""
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
