"""Kafka's releases as feature levels: the defaults of a new cluster, and checks of requested levels (pure).

Error messages are those of Kafka's storage tool, which makes the same checks.
"""

from collections.abc import Mapping
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.controller.facts import (
    ELR_FEATURE,
    KRAFT_FEATURE,
    METADATA_VERSION_LATEST,
    SUPPORTED_FEATURES,
)
from barnabas.metadata.image import METADATA_VERSION
from barnabas.protocol.stored.cluster_nodes import FeatureLevelRecord

_FIRST_LEVEL: Final = SUPPORTED_FEATURES[METADATA_VERSION].least
# One release per level, starting at the first level.
RELEASES: Final = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0"),
)
assert _FIRST_LEVEL + len(RELEASES) - 1 == METADATA_VERSION_LATEST, "a release for every level"

# The default level in new clusters, and the metadata.version from which it applies (before: 0). In Kafka's
# order.
_DEFAULTS: Final = {
    KRAFT_FEATURE: (1, 21),
    "transaction.version": (2, 24),
    "group.version": (1, 22),
    ELR_FEATURE: (1, 26),
    "share.version": (1, 28),
    "streams.version": (1, 29),
}
# The maximum levels that Kafka 4.3 knows. Only kraft.version 1 is not supported here.
_KNOWN: Final = {name: levels.most for name, levels in SUPPORTED_FEATURES.items()} | {KRAFT_FEATURE: 1}
# The minimum metadata.version that a level needs.
_NEEDS: Final = {(ELR_FEATURE, 1): 23}


# The oldest level whose record format the controller writes. Kafka could no longer read an older cluster.
LEAST_SERVED: Final = 19


class BadFeature(BarnabasError):
    """An unknown or unsupported release or feature level."""


def check_served(metadata_version: int) -> None:
    """BadFeature if the controller cannot write the record format of this level."""
    if metadata_version < LEAST_SERVED:
        raise BadFeature(
            f"{METADATA_VERSION} {_shown(metadata_version)} is older than the oldest supported version, "
            f"{_shown(LEAST_SERVED)}; upgrade the cluster with Kafka's kafka-features.sh first"
        )


def _shown(level: int) -> str:
    return f"{level} ({release_name(level)})" if level in SUPPORTED_FEATURES[METADATA_VERSION] else str(level)


def release_level(name: str) -> int:
    """The metadata.version of a release: `4.0-IV1` exactly; for `4.0` or `4.0.1` the last one of 4.0."""
    wanted = ".".join(name.split(".")[:2])
    for level in range(METADATA_VERSION_LATEST, _FIRST_LEVEL - 1, -1):
        if wanted in (release_name(level), release_name(level).partition("-")[0]):
            return level
    known = ", ".join(RELEASES)
    raise BadFeature(f"Unknown metadata.version '{name}'. Supported metadata.version are: {known}")


def release_name(level: int) -> str:
    return RELEASES[level - _FIRST_LEVEL]


def default_levels(metadata_version: int) -> dict[str, int]:
    """Kafka's default levels for a new cluster of this release, including kraft.version."""
    return {name: level if metadata_version >= since else 0 for name, (level, since) in _DEFAULTS.items()}


def needs_of(name: str, level: int) -> int | None:
    """The minimum metadata.version for a feature level; None if any will do. BadFeature if it is unknown."""
    if name == METADATA_VERSION:
        if level not in SUPPORTED_FEATURES[METADATA_VERSION]:
            raise BadFeature(f"Unknown metadata.version {level}")
        return None
    if name not in _KNOWN:
        raise BadFeature(f"Unknown feature: {name}")
    if not 0 <= level <= _KNOWN[name]:
        raise BadFeature(f"Feature level {level} is not supported for feature {name}")
    return _NEEDS.get((name, level))


def chosen_levels(release: str | None, asked: Mapping[str, int]) -> dict[str, int]:
    """The feature levels of a new cluster: the defaults of a release, overridden by the requested ones."""
    metadata_version = _metadata_version(release, asked)
    check_served(metadata_version)
    for name in asked:
        if name != METADATA_VERSION and name not in _KNOWN:
            known = ", ".join(sorted(_DEFAULTS))
            raise BadFeature(f"Unsupported feature: {name}. Supported features are: {known}")
    if asked.get(KRAFT_FEATURE, 0) != 0:
        raise BadFeature(
            f"{KRAFT_FEATURE}={asked[KRAFT_FEATURE]} (dynamic voters) is not supported yet; "
            "list the voters in controller.quorum.voters in the configuration"
        )
    levels = {**default_levels(metadata_version), KRAFT_FEATURE: 0, **asked}
    levels.pop(METADATA_VERSION, None)
    for name, level in levels.items():
        if not 0 <= level <= _KNOWN[name]:
            raise BadFeature(f"No feature:{name} with feature level {level}")
        least = _NEEDS.get((name, level))
        if least is not None and metadata_version < least:
            raise BadFeature(
                f"{name} could not be set to {level} because it depends on {METADATA_VERSION} level {least}"
            )
    return {METADATA_VERSION: metadata_version, **dict(sorted(levels.items()))}


def _metadata_version(release: str | None, asked: Mapping[str, int]) -> int:
    if METADATA_VERSION not in asked:
        return METADATA_VERSION_LATEST if release is None else release_level(release)
    if release is not None:
        raise BadFeature(
            f"Use --release-version instead of --feature {METADATA_VERSION}=X to avoid ambiguity."
        )
    level = asked[METADATA_VERSION]
    if level not in SUPPORTED_FEATURES[METADATA_VERSION]:
        raise BadFeature(
            f"No MetadataVersion with feature level {level}. Valid feature levels are from {_FIRST_LEVEL} to "
            f"{METADATA_VERSION_LATEST}."
        )
    return level


def level_records(levels: Mapping[str, int]) -> list[FeatureLevelRecord]:
    """The bootstrap records of a cluster with these levels. Level 0 needs no record."""
    return [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items() if level]
