"""The assignors by the names used by clients and settings."""

from collections.abc import Mapping
from typing import Final

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors.ranges import assign_ranges
from barnabas.coordinators.group.assignors.spec import Assignment, MemberSpec, TopicSpec
from barnabas.coordinators.group.assignors.uniform import assign_uniformly

UNIFORM: Final = "uniform"
RANGE: Final = "range"
ASSIGNORS: Final = (UNIFORM, RANGE)
# Class names in properties files written for Kafka.
ASSIGNOR_CLASSES: Final = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": UNIFORM,
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": RANGE,
}


def assign(
    assignor: str,
    members: Mapping[str, MemberSpec],
    topics: Mapping[Uuid, TopicSpec],
    *,
    homogeneous: bool,
) -> dict[str, Assignment]:
    """The target assignment of every member. `homogeneous` means that all subscribe to the same topics.

    A member whose assignment does not change gets its `owned` object back. `topics` contains at least every
    subscribed topic.
    """
    assert assignor in ASSIGNORS, f"unknown assignor {assignor}"
    if not members:
        return {}
    if assignor == RANGE:
        return assign_ranges(members, topics)
    return assign_uniformly(members, topics, homogeneous=homogeneous)
