"""The partition of a group: Java's hash of its id, as clients and Kafka expect."""

import pytest

from barnabas.coordinators.runtime.shards import partition_of

pytestmark = pytest.mark.kernel


# What String.hashCode() gives in Java, without the sign.
@pytest.mark.parametrize(
    ("name", "hashed"),
    [
        ("", 0),
        ("test", 3556498),
        ("classic-group", 1592783484),
        ("consumer-group", 1738392088),
        ("Gruppe-äöü", 708916024),
        # Two units of UTF-16.
        ("\U0001f600", 1772899),
        # The one int that has no absolute value.
        ("polygenelubricants", 0),
    ],
)
def test_the_hash_is_that_of_java(name: str, hashed: int) -> None:
    assert partition_of(name, 2**31) == hashed


def test_groups_are_in_the_partitions_where_kafka_looks_for_them() -> None:
    assert partition_of("classic-group", 50) == 34
    assert partition_of("consumer-group", 50) == 38
    # Kafka's sample directory has two partitions, and both groups in the first.
    assert partition_of("classic-group", 2) == partition_of("consumer-group", 2) == 0
