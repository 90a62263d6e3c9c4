"""The assignors by the names that clients and settings know them by."""

from collections.abc import Mapping
from typing import Final

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors.ranges import assign_ranges
from barnabas.coordinators.group.assignors.spec import Assignment, MemberSpec, TopicSpec
from barnabas.coordinators.group.assignors.uniform import assign_uniformly

UNIFORM: Final = "uniform"
RANGE: Final = "range"
ASSIGNORS: Final = (UNIFORM, RANGE)
# What a file that was made for Kafka may call them.
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
    """The target assignment of every member; `homogeneous` says that all subscribe to the same topics.

    A member that keeps what it has gets the very object back that was its `owned`. `topics` has every topic
    that somebody is subscribed to, and may have others.
    """
    assert assignor in ASSIGNORS, f"no assignor is named {assignor}"
    if not members:
        return {}
    if assignor == RANGE:
        return assign_ranges(members, topics)
    return assign_uniformly(members, topics, homogeneous=homogeneous)
