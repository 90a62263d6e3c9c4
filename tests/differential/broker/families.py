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
)


def every_story() -> Iterator[tuple[Family, str]]:
    for family in FAMILIES:
        for story in family.stories:
            yield family, story


def story_name(family: Family, story: str) -> str:
    return f"{family.name}/{story}"
