"""The states of a classic group, by the names that Kafka gives them, and which may follow which."""

from typing import Final

EMPTY: Final = "Empty"
# Members are called to join; the generation before is over.
PREPARING: Final = "PreparingRebalance"
# All have joined; the leader's assignment is awaited.
COMPLETING: Final = "CompletingRebalance"
STABLE: Final = "Stable"
# Its record is gone, or the shard is.
DEAD: Final = "Dead"

FOLLOWS: Final = {
    EMPTY: frozenset({PREPARING}),
    PREPARING: frozenset({STABLE, COMPLETING, EMPTY}),
    COMPLETING: frozenset({PREPARING}),
    STABLE: frozenset({COMPLETING}),
    DEAD: frozenset({EMPTY, PREPARING, COMPLETING, STABLE, DEAD}),
}
