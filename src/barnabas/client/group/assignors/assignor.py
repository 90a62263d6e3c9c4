"""What an assignor is, and which there are."""

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
# How many partitions each topic has; one that is not there has none.
Counts: TypeAlias = Mapping[str, int]
Shares: TypeAlias = dict[str, list[TopicPartition]]


@value(kw_only=True)
class Assignor:
    name: str
    assign: Callable[[Members, Counts], Shares]
    # Whether members may keep what they have while they join.
    cooperative: bool = False
    # The bytes that a member sends, of what it has had and under which generation.
    user_data: Callable[[Iterable[TopicPartition], int], bytes | None] = lambda tps, generation: None


def _previous(tps: Iterable[TopicPartition], generation: int) -> bytes | None:
    """As Java: nothing before the first assignment."""
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
