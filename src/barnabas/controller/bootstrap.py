"""The first records of a cluster, and the records of a controller that becomes active.

A new cluster has the feature levels of Kafka 4.3, which `format` writes to bootstrap.checkpoint. The first
leader copies them to the log in a transaction, so that no reader sees only some of them.
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

# The feature levels of a new Kafka 4.3 cluster.
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
    """The records that activate a controller. `in_transaction`: its predecessor left a transaction open."""
    records: list[object] = []
    if in_transaction:
        records.append(AbortTransactionRecord(reason=FAILOVER))
    # Every initialized cluster has a metadata.version.
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
