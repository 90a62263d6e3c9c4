"""The table of APIs that a broker speaks: one row for every key, from the file that answers it.

ApiVersions, the page docs/reference/apis.md and the dispatcher all go by it. There is no second list.
"""

from typing import Final

from barnabas.server.api import Api
from barnabas.server.handlers import (
    api_versions,
    cluster,
    configs,
    configs_alter,
    coordinators,
    delete_records,
    elections,
    features,
    fetch,
    init_producer_id,
    leader_epochs,
    list_offsets,
    log_dirs,
    metadata,
    produce,
    producers,
    quorum,
    topic_partitions,
    topics,
)

# In the order of their keys, as far as one file has one.
APIS: Final[tuple[Api, ...]] = (
    produce.API,
    fetch.API,
    list_offsets.API,
    metadata.API,
    coordinators.API,
    api_versions.API,
    *topics.APIS,
    delete_records.API,
    init_producer_id.API,
    leader_epochs.API,
    *configs.APIS,
    *configs_alter.APIS,
    log_dirs.API,
    elections.API,
    quorum.API,
    features.API,
    *cluster.APIS,
    producers.API,
    topic_partitions.API,
)
