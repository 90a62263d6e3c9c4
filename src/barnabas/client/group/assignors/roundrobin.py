"""roundrobin: assigns the partitions of all topics in turn to the subscribed members."""

from collections.abc import Mapping

from barnabas.base.ids import TopicPartition
from barnabas.client.group.assignors.order import in_order
from barnabas.client.group.subscription import Subscription


def assign_roundrobin(
    members: Mapping[str, Subscription], counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    ordered = in_order(members)
    shares: dict[str, list[TopicPartition]] = {member: [] for member in ordered}
    wanted = set().union(*(members[member].topics for member in ordered))
    turn = 0
    for topic in sorted(wanted & counts.keys()):
        for number in range(counts[topic]):
            while topic not in members[ordered[turn % len(ordered)]].topics:
                turn += 1
            shares[ordered[turn % len(ordered)]].append(TopicPartition(topic, number))
            turn += 1
    return shares
