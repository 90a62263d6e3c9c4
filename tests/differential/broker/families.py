"""All stories, by family; each family is told to a broker of its own."""

from collections.abc import Iterator

from differential.broker.admin import ADMIN
from differential.broker.classic_groups import CLASSIC
from differential.broker.classic_refusals import REFUSALS
from differential.broker.cluster import CLUSTER
from differential.broker.config_changes import CHANGES
from differential.broker.configs import CONFIGS
from differential.broker.consumer_groups import CONSUMERS
from differential.broker.consumer_refusals import REFUSED_CONSUMERS
from differential.broker.fetch_sessions import SESSIONS
from differential.broker.fetching import FETCH
from differential.broker.framing import FRAMING
from differential.broker.group_admin import GROUPS
from differential.broker.group_migration import MIGRATION
from differential.broker.group_offsets import COMMITTED
from differential.broker.group_policies import CLASSIC_ONLY, STAYING
from differential.broker.group_restarts import GROUP_RESTARTS
from differential.broker.group_timeouts import TIMEOUTS
from differential.broker.offsets import OFFSETS
from differential.broker.produce import PRODUCE
from differential.broker.producers import PRODUCERS
from differential.broker.refused import REFUSED
from differential.broker.restarts import RESTARTS
from differential.broker.static_members import STATIC
from differential.broker.talk import Family
from differential.broker.topics import TOPICS
from differential.broker.txn_batches import TXN_BATCHES
from differential.broker.txn_early import TXN_EARLY
from differential.broker.txn_ends import TXN_ENDS
from differential.broker.txn_levels import TXN_LEVELS, TXN_UNVERIFIED
from differential.broker.txn_markers import TXN_MARKERS
from differential.broker.txn_offsets import TXN_OFFSETS
from differential.broker.txn_partitions import TXN_PARTITIONS
from differential.broker.txn_producers import TXN_PRODUCERS
from differential.broker.txn_reading import TXN_READING
from differential.broker.txn_restarts import TXN_RESTARTS
from differential.broker.txn_timeouts import TXN_TIMEOUTS

FAMILIES = (
    CLUSTER,
    TOPICS,
    OFFSETS,
    PRODUCE,
    REFUSED,
    PRODUCERS,
    FETCH,
    SESSIONS,
    CONFIGS,
    CHANGES,
    ADMIN,
    FRAMING,
    RESTARTS,
    CLASSIC,
    STATIC,
    REFUSALS,
    COMMITTED,
    GROUPS,
    CONSUMERS,
    REFUSED_CONSUMERS,
    MIGRATION,
    STAYING,
    CLASSIC_ONLY,
    TIMEOUTS,
    GROUP_RESTARTS,
    TXN_EARLY,
    TXN_PRODUCERS,
    TXN_PARTITIONS,
    TXN_ENDS,
    TXN_BATCHES,
    TXN_OFFSETS,
    TXN_MARKERS,
    TXN_READING,
    TXN_TIMEOUTS,
    TXN_RESTARTS,
    TXN_LEVELS,
    TXN_UNVERIFIED,
)


def every_story() -> Iterator[tuple[Family, str]]:
    for family in FAMILIES:
        for story in family.stories:
            yield family, story


def story_name(family: Family, story: str) -> str:
    return f"{family.name}/{story}"
