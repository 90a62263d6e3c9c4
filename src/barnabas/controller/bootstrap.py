"""The first records of a cluster, and what a controller writes when it becomes active.

A new cluster works at the levels of Kafka 4.3, which `format` writes into bootstrap.checkpoint. The first
leader copies them into the log, in a transaction, so that no reader sees a part of them.
"""

from collections.abc import Sequence
from typing import Final

from barnabas.controller.facts import ELR_FEATURE, METADATA_VERSION_LATEST, ControllerSettings
from barnabas.controller.features import elr_safety_records
from barnabas.metadata.image import EMPTY_IMAGE, METADATA_VERSION, MetadataImage
from barnabas.protocol.stored.cluster_nodes import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)

# What Kafka 4.3 gives to a new cluster.
LATEST_LEVELS: Final = {
    METADATA_VERSION: METADATA_VERSION_LATEST,
    ELR_FEATURE: 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}
BOOTSTRAP_TRANSACTION: Final = "Bootstrap records"
FAILOVER: Final = "Controller failover"


def bootstrap_records() -> list[FeatureLevelRecord]:
    """The content of bootstrap.checkpoint for a cluster at the latest level."""
    return [FeatureLevelRecord(name=name, feature_level=level) for name, level in LATEST_LEVELS.items()]


def activation_records(
    image: MetadataImage,
    bootstrap: Sequence[object],
    settings: ControllerSettings,
    *,
    in_transaction: bool,
) -> list[object]:
    """What the log needs before the controller can work. `in_transaction`: the one before left one open."""
    records: list[object] = []
    if in_transaction:
        records.append(AbortTransactionRecord(reason=FAILOVER))
    # Every cluster that was ever begun has a metadata.version.
    if image.features:
        return records
    records.append(BeginTransactionRecord(name=BOOTSTRAP_TRANSACTION))
    records += bootstrap
    if any(
        isinstance(one, FeatureLevelRecord) and one.name == ELR_FEATURE and one.feature_level
        for one in bootstrap
    ):
        records += elr_safety_records(EMPTY_IMAGE, settings)
    records.append(EndTransactionRecord())
    return records
