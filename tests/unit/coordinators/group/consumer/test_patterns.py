"""Matching of regular expressions, and validity of the cached results."""

import pytest

from barnabas.coordinators.group.consumer.patterns import (
    COMPILED_MAX,
    RESULT_TOPICS_MAX,
    RESULTS_MAX,
    WANTED_MAX,
    Found,
    TopicPatterns,
)
from barnabas.coordinators.group.group import GroupError
from barnabas.protocol.error_codes import ErrorCode
from support.group.consumer_stories import image_of

MANY = image_of({f"orders-{number}": 1 for number in range(1_000)}, offset=5)
FEW = image_of({"orders": 1, "payments": 1}, offset=5)


def test_among_few_topics_a_small_expression_is_resolved_at_once() -> None:
    patterns = TopicPatterns()

    assert patterns.now("orders.*", FEW) == Found(frozenset({"orders"}), 5)
    assert not patterns.wanted


def test_among_many_topics_it_is_wanted_and_others_are_served_first() -> None:
    patterns = TopicPatterns()
    begun: list[bool] = []
    patterns.on_wanted = lambda: begun.append(True)

    assert patterns.topics_of("orders.*", MANY) is None
    assert patterns.topics_of("orders.*1", MANY) is None

    assert list(patterns.wanted) == ["orders.*", "orders.*1"]
    assert begun == [True]


def test_a_large_expression_is_not_matched_at_once() -> None:
    assert TopicPatterns().now("(.{0,100}){0,10}", image_of({"x" * 240: 1})) is None
    assert TopicPatterns().now("|".join(["abc"] * 1_000), FEW) is None


def test_a_result_holds_until_there_are_other_topics() -> None:
    patterns = TopicPatterns()
    patterns.now("x", MANY)
    patterns.put("orders.*", Found(frozenset({"orders-1"}), 5))

    altered = image_of(dict.fromkeys(MANY.topics, 2), offset=8)
    assert patterns.now("orders.*", altered) == Found(frozenset({"orders-1"}), 8)
    others = image_of({**dict.fromkeys(MANY.topics, 2), "more": 1}, offset=9)
    assert patterns.now("orders.*", others) is None
    # Until there is a new one it is better than nothing.
    assert patterns.topics_of("orders.*", others) == Found(frozenset({"orders-1"}), 5)


def test_an_invalid_expression_is_refused_and_matches_nothing() -> None:
    patterns = TopicPatterns()

    with pytest.raises(GroupError) as caught:
        patterns.check("(")

    assert caught.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert patterns.now("(", FEW) == Found(frozenset(), 5)


def test_the_caches_are_bounded() -> None:
    patterns = TopicPatterns()
    patterns.now("x", MANY)
    for number in range(2 * WANTED_MAX):
        patterns.topics_of(f"orders-{number}.*", MANY)
        patterns.compile(f"orders-{number}.*")
        patterns.put(f"orders-{number}.*", Found(frozenset(), 5))
    assert len(patterns.wanted) == WANTED_MAX
    assert (
        sum(patterns.compiled(f"orders-{one}.*") is not None for one in range(2 * WANTED_MAX)) == COMPILED_MAX
    )
    held = [one for one in range(2 * WANTED_MAX) if patterns.now(f"orders-{one}.*", MANY)]
    assert len(held) == RESULTS_MAX

    half = frozenset(map(str, range(RESULT_TOPICS_MAX // 2)))
    for name in "abc":
        patterns.put(name, Found(half, 5))
    assert [name for name in "abc" if patterns.now(name, MANY)] == ["b", "c"]
