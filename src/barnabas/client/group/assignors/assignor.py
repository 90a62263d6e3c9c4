"""The Assignor type and the table of assignors."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.client.group.assignors.range import assign_range
from barnabas.client.group.assignors.roundrobin import assign_roundrobin
from barnabas.client.group.assignors.sticky import assign_cooperative, assign_sticky
from barnabas.client.group.subscription import (
    NO_GENERATION,
    Subscription,
    encode_generation,
    encode_previous,
)

# Members by id.
Members: TypeAlias = Mapping[str, Subscription]
# Partition counts; missing topics are not included.
Counts: TypeAlias = Mapping[str, int]
Shares: TypeAlias = dict[str, list[TopicPartition]]


@value(kw_only=True)
class Assignor:
    name: str
    assign: Callable[[Members, Counts], Shares]
    # Whether members keep their partitions during a rebalance.
    cooperative: bool = False
    # Encodes a member's user data from its last partitions and generation.
    user_data: Callable[[Iterable[TopicPartition], int], bytes | None] = lambda tps, generation: None


def _previous(tps: Iterable[TopicPartition], generation: int) -> bytes | None:
    """As in Java: no user data before the first assignment."""
    return None if generation == NO_GENERATION else encode_previous(tps, generation)


def _generation(tps: Iterable[TopicPartition], generation: int) -> bytes | None:
    return encode_generation(generation)


ASSIGNORS: Final = {
    each.name: each
    for each in (
        Assignor(name="range", assign=assign_range),
        Assignor(name="roundrobin", assign=assign_roundrobin),
        Assignor(name="sticky", assign=assign_sticky, user_data=_previous),
        Assignor(
            name="cooperative-sticky", assign=assign_cooperative, cooperative=True, user_data=_generation
        ),
    )
}
