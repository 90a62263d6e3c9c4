"""Parse feature levels on the command line of `barnabas storage`, and print them as Kafka's tool does."""

from collections.abc import Iterable, Mapping

from barnabas.controller.facts import METADATA_VERSION_LATEST
from barnabas.metadata.image import METADATA_VERSION
from barnabas.server.cluster.releases import (
    BadFeature,
    default_levels,
    level_records,
    needs_of,
    release_level,
    release_name,
)


def parse_levels(asked: Iterable[str]) -> dict[str, int]:
    """Parse FEATURE=LEVEL options. If a feature is given twice, the last level wins."""
    levels = {}
    for text in asked:
        name, equals, level = text.partition("=")
        if not equals:
            raise BadFeature(f"Can't parse feature=level string {text}: equals sign not found.")
        try:
            levels[name.strip()] = _short(level.strip())
        except ValueError:
            raise BadFeature(
                f"Can't parse feature=level string {text}: unable to parse {level} as a short."
            ) from None
    return levels


def _short(text: str) -> int:
    number = int(text) if text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 6 else None
    if number is None or not -(1 << 15) <= number < 1 << 15:
        raise ValueError(text)
    return number


def describe(levels: Mapping[str, int]) -> str:
    """Describe the bootstrap records of a cluster in the format of Kafka's tool."""
    shown = [f"name='{one.name}', featureLevel={one.feature_level}" for one in level_records(levels)]
    records = ", ".join(f"ApiMessageAndVersion(FeatureLevelRecord({one}) at version 0)" for one in shown)
    source = f"metadataVersionLevel={levels[METADATA_VERSION]}, source=format command"
    return f"Bootstrap metadata: BootstrapMetadata(records=[{records}], {source})"


def print_mapping(release: str | None) -> int:
    level = METADATA_VERSION_LATEST if release is None else release_level(release)
    print(f"{METADATA_VERSION}={level} ({release or release_name(level)})")
    for name, default in default_levels(level).items():
        print(f"{name}={default}")
    return 0


def print_needs(asked: Iterable[str]) -> int:
    for text in asked:
        name, equals, number = text.partition("=")
        if not equals:
            raise BadFeature(
                f"Invalid feature format: {text}. Expected format: 'feature=version' (e.g. 'group.version=1')"
            )
        try:
            level = _short(number)
        except ValueError:
            raise BadFeature(f"Invalid version format: {number} for feature {name}") from None
        least = needs_of(name, level)
        shown = f"{name}={level}" + (f" ({release_name(level)})" if name == METADATA_VERSION else "")
        if least is None:
            print(f"{shown} has no dependencies.")
        else:
            print(f"{shown} requires:\n    {METADATA_VERSION}={least} ({release_name(least)})")
    return 0
