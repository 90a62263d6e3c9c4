"""One group's rows against a dictionary: small tables, large ones, and values of both kinds."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordinators.group.offsets.table import (
    FREE,
    NOT_FOUND,
    ROW_WORDS,
    GroupOffsets,
    fitting,
    home,
    pack_key,
)

pytestmark = pytest.mark.kernel

# Few keys, so that most steps are about one that is there.
KEYS = st.integers(0, 12).map(lambda number: pack_key(number % 3, number // 3))
# None removes; a number is a plain value, bytes are an odd one.
STEPS = st.lists(st.tuples(KEYS, st.none() | st.integers(1, 9) | st.binary(max_size=2)), max_size=60)


def contents(offsets: GroupOffsets) -> dict[int, object]:
    found: dict[int, object] = {}
    at = offsets.next_row(0)
    while at != NOT_FOUND:
        key, offset, facts = offsets.row_at(at)
        assert key not in found
        assert facts == offset + 1
        found[key] = offset
        at = offsets.next_row(at + ROW_WORDS)
    odd = dict(offsets.other_values())
    assert not odd.keys() & found.keys()
    return found | odd


def got(offsets: GroupOffsets, key: int) -> object:
    offset, facts = offsets.row(key)
    return offsets.other(key) if facts == FREE else offset


def change(offsets: GroupOffsets, model: dict[int, object], key: int, content: object) -> None:
    if content is None:
        assert offsets.remove(key) == (model.pop(key, None) is not None)
        return
    if isinstance(content, bytes):
        is_new = offsets.put_other(key, content)
    else:
        assert isinstance(content, int)
        is_new = offsets.put(key, content, content + 1)
    assert is_new == (key not in model)
    model[key] = content


@given(STEPS)
def test_rows_behave_like_a_dictionary(steps: list[tuple[int, int | bytes | None]]) -> None:
    offsets = GroupOffsets()
    model: dict[int, object] = {}

    for key, content in steps:
        change(offsets, model, key, content)

        assert contents(offsets) == model
        assert offsets.is_empty == (not model)
        assert got(offsets, key) == model.get(key)


@pytest.mark.parametrize("topics", [1, 7, 300])
def test_many_rows_are_added_and_removed(topics: int) -> None:
    """Until nothing is left, in an order of their own: rows move up into gaps, and round the end."""
    rng = Random(topics)
    keys = [pack_key(number % topics, number // topics) for number in range(600)]
    rng.shuffle(keys)
    offsets = GroupOffsets()
    model: dict[int, object] = {}

    for key in keys:
        change(offsets, model, key, rng.randrange(100))
    assert all(got(offsets, key) == model[key] for key in keys)
    rng.shuffle(keys)
    for count, key in enumerate(keys):
        change(offsets, model, key, None)
        assert got(offsets, key) is None
        if count % 50 == 0:
            assert all(got(offsets, key) == content for key, content in model.items())

    assert offsets.is_empty


def test_most_rows_are_in_use_and_those_of_removed_offsets_are_given_back() -> None:
    offsets = GroupOffsets()
    for partition in range(1000):
        offsets.put(pack_key(0, partition), 1, 2)
        rows = len(offsets._words) // ROW_WORDS
        assert partition < 10 or rows <= (partition + 1) * 1.6

    for partition in range(1, 1000):
        offsets.remove(pack_key(0, partition))

    assert len(offsets._words) // ROW_WORDS <= 3


@pytest.mark.parametrize("topics", [1, 2, 10, 30, 100, 1000])
def test_a_search_is_short_also_in_a_full_table(topics: int) -> None:
    rows = 1143
    count = fitting(rows)
    taken: set[int] = set()
    steps = 0
    for number in range(count):
        at = home(pack_key(number % topics, number // topics), rows)
        assert 0 <= at < rows
        while at in taken:
            at = (at + 1) % rows
            steps += 1
        taken.add(at)

    # With a random place for each it would be 3.5.
    assert steps / count < 1


def test_the_only_offset_of_a_group_takes_one_row() -> None:
    offsets = GroupOffsets()

    offsets.put(pack_key(3, 5), 7, 1)

    assert len(offsets._words) == ROW_WORDS
    assert offsets.row(pack_key(3, 5)) == (7, 1)
    assert offsets.row(pack_key(3, 6)) == (0, FREE)
    assert not offsets.remove(pack_key(3, 6))
