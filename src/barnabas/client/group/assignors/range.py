"""range: assigns consecutive partitions of each topic separately.

The first members get one more if the count does not divide evenly. Topics with equal partition counts and
subscribers are assigned alike, so that records of one key reach the same member (co-partitioning).
"""

from collections.abc import Mapping

from barnabas.base.ids import TopicPartition
from barnabas.client.group.assignors.order import in_order
from barnabas.client.group.subscription import Subscription


def assign_range(
    members: Mapping[str, Subscription], counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    ordered = in_order(members)
    shares: dict[str, list[TopicPartition]] = {member: [] for member in ordered}
    for topic in sorted(counts):
        wanting = [member for member in ordered if topic in members[member].topics]
        if not wanting:
            continue
        each, more = divmod(counts[topic], len(wanting))
        first = 0
        for place, member in enumerate(wanting):
            after = first + each + (place < more)
            shares[member] += [TopicPartition(topic, number) for number in range(first, after)]
            first = after
    return shares
