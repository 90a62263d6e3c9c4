"""The table of supported APIs: one row per key, defined in the handler's file.

ApiVersions, docs/reference/apis.md and the dispatcher all use it. There is no second list.
"""

from typing import Final

from barnabas.server.handlers import (
    api_versions,
    cluster,
    configs,
    configs_alter,
    coordinators,
    delete_records,
    elections,
    fetch,
    group_admin,
    group_membership,
    group_offsets,
    init_producer_id,
    leader_epochs,
    list_offsets,
    log_dirs,
    metadata,
    offset_fetch,
    produce,
    producers,
    quorum,
    topic_partitions,
    topics,
    transactions,
    txn_admin,
    txn_markers,
    txn_offsets,
)
from barnabas.server.requests.api import Api

# Sorted by key, except where one file has several.
APIS: Final[tuple[Api, ...]] = (
    produce.API,
    fetch.API,
    list_offsets.API,
    metadata.API,
    group_offsets.COMMIT_API,
    offset_fetch.API,
    coordinators.API,
    *group_membership.APIS,
    *group_admin.APIS,
    api_versions.API,
    *topics.APIS,
    delete_records.API,
    init_producer_id.API,
    leader_epochs.API,
    *transactions.APIS,
    txn_markers.API,
    txn_offsets.API,
    *configs.APIS,
    *configs_alter.APIS,
    log_dirs.API,
    group_admin.DELETE_API,
    elections.API,
    group_offsets.DELETE_API,
    quorum.API,
    *cluster.APIS,
    producers.API,
    *txn_admin.APIS,
    group_membership.CONSUMER_API,
    group_admin.CONSUMER_API,
    topic_partitions.API,
)
WITH_UNSTABLE: Final[tuple[Api, ...]] = tuple(row.unstable() for row in APIS)


def spoken(*, unstable: bool) -> tuple[Api, ...]:
    """The supported APIs, with unstable versions or without."""
    return WITH_UNSTABLE if unstable else APIS
