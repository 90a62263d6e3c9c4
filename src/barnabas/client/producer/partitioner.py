"""Chooses the partition of a record. Pure.

Records that no hash decides about are sticky: they go to one partition until a batch is full, then another
is chosen (KIP-480, KIP-794). Hashes are those of Java's client and of librdkafka.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Final, TypeAlias

from barnabas.client.producer.errors import BadPartition
from barnabas.client.producer.key_hashes import consistent_partition, fnv1a_partition, murmur2_partition
from barnabas.client.producer.settings import CUSTOM, PartitionerFunction, ProducerSettings

# In place of a partition: the current sticky partition.
STICK: Final = -1

# Topic, key, number of partitions: a partition or STICK.
Choose: TypeAlias = Callable[[str, bytes | None, int], int]
Hash: TypeAlias = Callable[[bytes, int], int]

_HASHES: Final[dict[str, Hash]] = {
    "murmur2": murmur2_partition,
    "consistent": consistent_partition,
    "fnv1a": fnv1a_partition,
}


def chooser_of(
    settings: ProducerSettings, function: PartitionerFunction | None, rng: Random
) -> tuple[Choose, Hash | None]:
    """Return the partitioner, and its hash if that decides for every key that is not null."""
    name = settings.partitioner
    if name == CUSTOM:
        assert function is not None, "a custom partitioner without a function"
        return _checked(function), None
    if settings.partitioner_ignore_keys or name == "sticky":
        return _stick, None
    if name == "random":
        return lambda topic, key, count: rng.randrange(count), None
    kind, _, keyless = name.partition("_")
    hashed = _HASHES[kind]
    if not keyless:
        return lambda topic, key, count: hashed(key or b"", count), None
    if kind == "consistent":
        # As in librdkafka: an empty key counts as no key here, but as a key for the other two.
        return lambda topic, key, count: hashed(key, count) if key else STICK, None
    return lambda topic, key, count: STICK if key is None else hashed(key, count), hashed


def _stick(topic: str, key: bytes | None, count: int) -> int:
    return STICK


def _checked(function: PartitionerFunction) -> Choose:
    def choose(topic: str, key: bytes | None, count: int) -> int:
        chosen = function(topic, key, count)
        if not isinstance(chosen, int) or not 0 <= chosen < count:
            raise BadPartition(topic, chosen, count)
        return chosen

    return choose


def next_sticky(queued: Sequence[int], led: Sequence[bool], rng: Random, *, adaptive: bool) -> int:
    """Return the next sticky partition: one with a leader, preferably with a short queue.

    `queued` is the number of waiting batches per partition. A slow broker has long queues, and equal shares
    would make them longer.
    """
    count = len(queued)
    choice = [number for number in range(count) if led[number]] or list(range(count))
    if not adaptive:
        return choice[rng.randrange(len(choice))]
    longest = max(queued[number] for number in choice)
    return rng.choices(choice, [longest + 1 - queued[number] for number in choice])[0]
