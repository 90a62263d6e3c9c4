"""The states of a classic group, with Kafka's names, and their transitions."""

from typing import Final

EMPTY: Final = "Empty"
# Waiting for members to join.
PREPARING: Final = "PreparingRebalance"
# Waiting for the leader's assignment.
COMPLETING: Final = "CompletingRebalance"
STABLE: Final = "Stable"
# The group was deleted, or its shard was closed.
DEAD: Final = "Dead"

FOLLOWS: Final = {
    EMPTY: frozenset({PREPARING}),
    PREPARING: frozenset({STABLE, COMPLETING, EMPTY}),
    COMPLETING: frozenset({PREPARING}),
    STABLE: frozenset({COMPLETING}),
    DEAD: frozenset({EMPTY, PREPARING, COMPLETING, STABLE, DEAD}),
}
