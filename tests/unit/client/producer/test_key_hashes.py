"""Keys go to the partitions that Java's producer and librdkafka chose."""

from collections.abc import Callable

import pytest

from barnabas.client.producer.key_hashes import (
    consistent_partition,
    fnv1a_partition,
    murmur2,
    murmur2_partition,
    murmur2_partitions,
)
from support.our_client.recorded_partitions import RecordedPartitions

pytestmark = pytest.mark.kernel

RECORDED = RecordedPartitions.read()
OURS: dict[str, Callable[[bytes, int], int]] = {
    "java": murmur2_partition,
    "murmur2": murmur2_partition,
    "murmur2_random": murmur2_partition,
    "consistent": consistent_partition,
    "consistent_random": consistent_partition,
    "fnv1a": fnv1a_partition,
    "fnv1a_random": fnv1a_partition,
}
# For 368 keys and seven partition counts.
KEYS_MIN = 350
COUNTS = (1, 2, 3, 7, 12, 100, 1000)


def test_every_partitioner_is_recorded_with_every_number_of_partitions() -> None:
    found = {(partitioner, count) for partitioner, count, _ in RECORDED.all()}

    assert len(RECORDED.keys) > KEYS_MIN
    assert found == {(partitioner, count) for partitioner in OURS for count in COUNTS}


@pytest.mark.parametrize("partitioner", OURS)
def test_a_key_goes_where_the_published_client_puts_it(partitioner: str) -> None:
    for count in COUNTS:
        recorded = RECORDED.get(partitioner, count)
        assert recorded is not None

        ours = [OURS[partitioner](key, count) for key in RECORDED.keys]

        # Skip keys for which the client chose a random partition.
        certain = [at for at, partition in enumerate(recorded) if partition is not None]
        assert [ours[at] for at in certain] == [recorded[at] for at in certain], f"{count} partitions"


def test_only_empty_keys_with_a_random_partition_are_not_compared() -> None:
    by_chance = {
        (partitioner, RECORDED.keys[at])
        for partitioner, _, recorded in RECORDED.all()
        for at, partition in enumerate(recorded)
        if partition is None
    }

    assert by_chance == {("consistent_random", b"")}


def test_the_hash_is_the_signed_number_that_java_computes() -> None:
    assert [murmur2(key) for key in RECORDED.keys] == RECORDED.murmur2
    assert min(RECORDED.murmur2) < 0 < max(RECORDED.murmur2)


@pytest.mark.parametrize("count", COUNTS)
def test_many_keys_at_once_go_where_each_of_them_goes(count: int) -> None:
    assert murmur2_partitions(RECORDED.keys, count) == RECORDED.get("java", count)
    assert murmur2_partitions([], count) == []


@pytest.mark.parametrize("partitioner", [murmur2_partition, consistent_partition, fnv1a_partition])
def test_a_topic_without_partitions_is_an_assertion_error(partitioner: Callable[[bytes, int], int]) -> None:
    with pytest.raises(AssertionError, match="0 partitions"):
        partitioner(b"key", 0)
