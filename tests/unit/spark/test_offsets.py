"""Spark's JSON of offsets round-trips, and other text is rejected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.ids import TopicPartition
from barnabas.spark.offsets import BadOffsets, from_json, partitions_from_json, to_json

ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
PLACES = st.builds(TopicPartition, st.text(min_size=1), st.integers(0, (1 << 31) - 1))


def test_the_text_is_that_of_sparks_own_source() -> None:
    # Copied from a checkpoint of Spark's own source.
    assert to_json({ORDERS_1: 7, ORDERS_0: 23}) == '{"orders":{"0":23,"1":7}}'
    assert to_json({}) == "{}"


def test_partitions_are_sorted_by_number_and_topics_by_name() -> None:
    offsets = {TopicPartition("b", 10): 1, TopicPartition("b", 9): 2, TopicPartition("a", 0): 3}

    assert to_json(offsets) == '{"a":{"0":3},"b":{"9":2,"10":1}}'


def test_text_of_others_with_spaces_and_another_order_is_read() -> None:
    assert from_json('{ "orders": {"1": -1, "0": -2} }') == {ORDERS_0: -2, ORDERS_1: -1}


@given(st.dictionaries(PLACES, st.integers(0, (1 << 63) - 1)))
def test_offsets_round_trip_to_the_same_text(offsets: dict[TopicPartition, int]) -> None:
    text = to_json(offsets)

    assert from_json(text) == offsets
    assert to_json(from_json(text)) == text
    assert to_json(dict(reversed(offsets.items()))) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "earliest",
        "[]",
        '{"orders":7}',
        '{"orders":[0]}',
        '{"orders":{"0":"7"}}',
        '{"orders":{"0":7.5}}',
        '{"orders":{"0":true}}',
        '{"orders":{"0":-3}}',
        '{"orders":{"0":9223372036854775808}}',
        '{"orders":{"-1":7}}',
        '{"orders":{"2147483648":7}}',
        '{"orders":{"one":7}}',
        '{"orders":{"٣":7}}',
        '{"orders":{"0":7,"0":8}}',
        '{"orders":{"0":7,"00":8}}',
        '{"orders":{"0":7},"orders":{"1":8}}',
        '{"":{"0":7}}',
    ],
)
def test_invalid_offsets_are_rejected(text: str) -> None:
    with pytest.raises(BadOffsets):
        from_json(text)


def test_partitions_to_assign_are_read() -> None:
    assert partitions_from_json('{"orders":[1,0]}') == [ORDERS_1, ORDERS_0]


@pytest.mark.parametrize(
    "text",
    [
        '{"orders":[]}',
        '{"orders":{"0":1}}',
        '{"orders":["0"]}',
        '{"orders":[-1]}',
        '{"orders":[0,0]}',
        "orders",
    ],
)
def test_invalid_partitions_are_rejected(text: str) -> None:
    with pytest.raises(BadOffsets):
        partitions_from_json(text)
