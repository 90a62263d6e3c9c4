"""The table against a dictionary, in one group and in many."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.coordinators.group.offsets.record import NO_EXPIRY, CommittedOffset, pack_offset
from barnabas.coordinators.group.offsets.table import OffsetTable, pack_key, partition_in, topic_in

pytestmark = pytest.mark.kernel

GROUPS = st.sampled_from(["a", "b"])
TOPICS = st.sampled_from(["x", "y"])
PARTITIONS = st.sampled_from([0, 1, 2**31 - 1, -(2**31)])
OLD_ID, NEW_ID = Uuid(b"o" * 16), Uuid(b"o" * 8 + b"n" * 8)
OTHER_ID = Uuid(b"n" * 8 + b"o" * 8)


def committed(offset: int, topic_id: Uuid = ZERO_UUID, metadata: str = "") -> bytes:
    return pack_offset(CommittedOffset(offset, 3, metadata, 1_790_000_000_000, NO_EXPIRY, topic_id))


# A tag with an id that is none, which nobody writes.
STRANGE = committed(1, OLD_ID).replace(OLD_ID, ZERO_UUID)
VALUES = (
    st.binary(min_size=1, max_size=3)
    | st.builds(
        committed,
        st.integers(0, 5),
        st.sampled_from([ZERO_UUID, OLD_ID, NEW_ID, OTHER_ID]),
        st.sampled_from(["", "", "m"]),
    )
    | st.just(STRANGE)
)
STEPS = st.lists(st.tuples(GROUPS, TOPICS, PARTITIONS, st.none() | VALUES))


@given(STEPS)
def test_it_is_a_dictionary_of_groups_topics_and_partitions(
    steps: list[tuple[str, str, int, bytes | None]],
) -> None:
    table = OffsetTable()
    model: dict[tuple[str, str, int], bytes] = {}

    for group, topic, partition, value in steps:
        if value is None:
            table.remove(group, topic, partition)
            model.pop((group, topic, partition), None)
        else:
            table.put(group, topic, partition, value)
            model[group, topic, partition] = value

    assert table.count == len(model)
    assert set(table.groups()) == {group for group, _, _ in model}
    assert {topic for topic in "xy" if table.has_topic(topic)} == {topic for _, topic, _ in model}
    for group, topic, partition, _ in steps:
        assert table.get(group, topic, partition) == model.get((group, topic, partition))
    for group in "ab":
        assert (group in table) == any(one == group for one, _, _ in model)
        assert table.of_group(group) == sorted(
            (topic, partition, value) for (one, topic, partition), value in model.items() if one == group
        )


def test_a_group_goes_from_many_offsets_to_one_to_none() -> None:
    table = OffsetTable()
    for partition in range(3):
        table.put("g", "x", partition, b"%d" % partition)

    table.remove("g", "x", 1)
    assert table.of_group("g") == [("x", 0, b"0"), ("x", 2, b"2")]
    table.remove("g", "x", 0)
    assert table.of_group("g") == [("x", 2, b"2")]
    table.remove("g", "x", 0)
    assert table.of_group("g") == [("x", 2, b"2")]
    table.remove("g", "x", 2)

    assert (table.of_group("g"), table.groups(), table.count) == ([], [], 0)


@given(st.integers(0, 2**28 - 1), st.integers(-(2**31), 2**31 - 1))
def test_topic_and_partition_are_unpacked_from_a_key(topic: int, partition: int) -> None:
    key = pack_key(topic, partition)

    assert (topic_in(key), partition_in(key)) == (topic, partition)
    assert 0 <= key < 2**60


def test_numbers_of_topics_that_are_gone_are_given_again() -> None:
    table = OffsetTable()

    for number in range(1000):
        table.put("g", f"topic-{number}", 0, b"1")
        table.put("g", f"topic-{number + 1}", 0, b"2")
        table.remove("g", f"topic-{number}", 0)

    assert max(table.topics.find(name) for name, _, _ in table.of_group("g")) < 3


def test_a_topic_keeps_its_number_while_any_group_has_an_offset_of_it() -> None:
    table = OffsetTable()
    table.put("g", "x", 0, b"1")
    table.put("h", "x", 0, b"2")

    table.remove("g", "x", 0)
    table.put("g", "y", 0, b"3")

    assert table.get("h", "x", 0) == b"2"
    assert table.get("g", "y", 0) == b"3"
    assert table.get("g", "x", 0) is None


@pytest.mark.parametrize("new_id", [NEW_ID, OTHER_ID])
def test_the_id_of_a_topic_is_forgotten_with_its_last_offset(new_id: Uuid) -> None:
    """A topic of the same name has another, and its offsets are as small."""
    table = OffsetTable()
    table.put("g", "x", 0, committed(1, OLD_ID))
    table.put("g", "x", 1, committed(2, new_id))
    assert [value for _, value in table.offsets_of("g").other_values()] == [committed(2, new_id)]

    table.remove("g", "x", 0)
    table.remove("g", "x", 1)
    table.put("g", "x", 0, committed(3, new_id))

    assert table.offsets_of("g").other_values() == []
    assert table.get("g", "x", 0) == committed(3, new_id)


def test_reused_numbers_have_no_id() -> None:
    table = OffsetTable()
    table.put("g", "x", 0, committed(1, OLD_ID))
    table.remove("g", "x", 0)

    table.put("g", "y", 0, committed(2))
    table.put("g", "y", 1, committed(3, NEW_ID))

    assert table.of_group("g") == [("y", 0, committed(2)), ("y", 1, committed(3, NEW_ID))]
    assert table.offsets_of("g").other_values() == []


def test_groups_that_are_removed_leave_no_memory_behind() -> None:
    table, names = OffsetTable(), [f"group-{number}" for number in range(10_000)]
    value = committed(1)
    tracemalloc.start()
    try:
        for name in names:
            table.put(name, "x", 0, value)
        full, _ = tracemalloc.get_traced_memory()
        for name in names:
            table.remove(name, "x", 0)
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert left < full / 20
