"""Partitioners."""

from collections import Counter
from random import Random

import pytest

from barnabas.client.producer.errors import BadPartition
from barnabas.client.producer.key_hashes import consistent_partition, fnv1a_partition, murmur2_partition
from barnabas.client.producer.partitioner import STICK, Choose, chooser_of, next_sticky
from barnabas.client.producer.settings import PARTITIONERS, producer_settings

COUNT = 7


def chooser(**named: object) -> Choose:
    settings, function = producer_settings({"bootstrap.servers": "a:1"}, named)
    return chooser_of(settings, function, Random(1))[0]


@pytest.mark.parametrize(
    ("name", "hashed"),
    [
        ("murmur2", murmur2_partition),
        ("consistent", consistent_partition),
        ("fnv1a", fnv1a_partition),
    ],
)
def test_keys_are_hashed_and_keyless_records_follow_the_partitioner(name: str, hashed: object) -> None:
    assert callable(hashed)
    for key in (b"a", b"key", b"\x00" * 9):
        assert chooser(partitioner=name)("t", key, COUNT) == hashed(key, COUNT)
        assert chooser(partitioner=f"{name}_random")("t", key, COUNT) == hashed(key, COUNT)
    assert chooser(partitioner=name)("t", None, COUNT) == hashed(b"", COUNT)
    assert chooser(partitioner=f"{name}_random")("t", None, COUNT) == STICK


def test_an_empty_key_is_a_key_but_for_consistent_random() -> None:
    """As in Java and librdkafka."""
    assert chooser(partitioner="murmur2_random")("t", b"", COUNT) == murmur2_partition(b"", COUNT)
    assert chooser(partitioner="fnv1a_random")("t", b"", COUNT) == fnv1a_partition(b"", COUNT)
    assert chooser(partitioner="consistent_random")("t", b"", COUNT) == STICK


@pytest.mark.parametrize("name", PARTITIONERS)
def test_keys_can_be_ignored(name: str) -> None:
    assert chooser(partitioner=name, partitioner_ignore_keys=True)("t", b"key", COUNT) == STICK


def test_random_and_sticky_do_not_look_at_keys() -> None:
    choose = chooser(partitioner="random")
    assert {choose("t", b"key", COUNT) for _ in range(200)} == set(range(COUNT))
    assert chooser(partitioner="sticky")("t", b"key", COUNT) == STICK


def test_the_result_of_a_partitioner_function_is_checked() -> None:
    asked: list[object] = []

    def mine(topic: str, key: bytes | None, count: int) -> int:
        asked.append((topic, key, count))
        return int(key or b"0")

    choose = chooser(partitioner=mine)
    assert choose("t", b"6", COUNT) == 6
    assert asked == [("t", b"6", COUNT)]
    for wrong in (b"7", b"-1"):
        with pytest.raises(BadPartition):
            choose("t", wrong, COUNT)


def test_sticky_partitions_have_a_leader() -> None:
    rng = Random(1)
    led = [False, True, False, True]
    assert {next_sticky([0] * 4, led, rng, adaptive=True) for _ in range(100)} == {1, 3}
    # If no partition has a leader, all are candidates.
    assert {next_sticky([0] * 4, [False] * 4, rng, adaptive=False) for _ in range(100)} == {0, 1, 2, 3}


def test_partitions_with_long_queues_are_chosen_less_often() -> None:
    rng = Random(1)
    chosen = Counter(next_sticky([0, 9, 4], [True] * 3, rng, adaptive=True) for _ in range(1700))
    # By the weights 10, 1 and 6.
    assert 900 < chosen[0] < 1100
    assert 50 < chosen[1] < 150
    even = Counter(next_sticky([0, 9, 4], [True] * 3, rng, adaptive=False) for _ in range(900))
    assert min(even.values()) > 250
