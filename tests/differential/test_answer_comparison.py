"""The comparison itself: what it takes for a difference, what it does not, and how it tells of it."""

from typing import Any

import pytest

from differential.broker.batches import batch, describe_batches
from differential.broker.compare import MISSING, compare_story
from differential.broker.differences import Difference
from differential.broker.normal import Normaliser

BASE_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def normal(answer: Any) -> Any:
    return Normaliser(base_ms=BASE_MS, texts={"127.0.0.1:4711": "<address>"}).answer(answer)


def differing(kafka: Any, ours: Any) -> list[tuple[str, Any, Any]]:
    return [(each.path, each.kafka, each.ours) for each in compare_story("s", {"a": kafka}, {"a": ours})]


def test_a_different_field_is_reported_with_its_path() -> None:
    kafka = {"topics": [{"name": "b", "errorCode": 3}, {"name": "a", "errorCode": 0}]}
    ours = {"topics": [{"name": "a", "errorCode": 0}, {"name": "b", "errorCode": 5}]}

    assert differing(kafka, ours) == [("topics[b].errorCode", 3, 5)]


def test_a_missing_item_is_one_difference() -> None:
    kafka = {"topics": [{"name": "a"}, {"name": "b"}]}

    assert differing(kafka, {"topics": [{"name": "b"}]}) == [("topics[a]", {"name": "a"}, MISSING)]


def test_items_without_names_are_compared_in_their_order() -> None:
    assert differing({"replicas": [1, 2]}, {"replicas": [1, 3, 4]}) == [
        ("replicas[1]", 2, 3),
        ("replicas[2]", MISSING, 4),
    ]


def test_a_step_that_only_one_of_them_has_is_a_difference() -> None:
    found = compare_story("s", {"first": 1}, {"first": 1, "second": 2})

    assert [(each.step, each.kafka, each.ours) for each in found] == [("second", MISSING, 2)]


@pytest.mark.parametrize(
    ("kafka", "ours", "differs"),
    [("words", "other words", False), (None, "words", True), ("", None, True), ("", "words", True)],
)
def test_messages_are_compared_by_being_there(kafka: str | None, ours: str | None, differs: bool) -> None:
    assert bool(differing({"errorMessage": kafka}, {"errorMessage": ours})) is differs


def test_zero_and_false_are_not_the_same() -> None:
    assert differing({"isInternal": False}, {"isInternal": 0}) == [("isInternal", False, 0)]


def test_topic_ids_are_replaced_by_topic_names() -> None:
    made = {"topics": [{"name": "orders", "topicId": "x" * 22}]}
    read = {"responses": [{"topicId": "x" * 22}, {"topicId": "y" * 22}]}

    assert normal([made, read]) == [
        {"responses": [{"topicId": "<id 1>"}, {"topicId": "<id of orders>"}]},
        {"topics": [{"name": "orders", "topicId": "<id of orders>"}]},
    ]


def test_only_the_random_part_of_a_member_id_is_replaced() -> None:
    first, second = "0b6f1c2e-0a5b-4a57-9a3e-0d6f0f3b2a10", "5f0c7a44-91c2-4d1e-8a55-3a1b9c0d2e33"
    story = Normaliser(base_ms=BASE_MS, texts={})

    told = [
        story.answer({"memberId": name})["memberId"]
        for name in (f"app-{first}", f"one-{second}", f"app-{first}", "m1", "x" * 22)
    ]

    assert told == ["app-<member 1>", "one-<member 2>", "app-<member 1>", "m1", "<member 3>"]


def test_recent_times_are_compared_by_distance_and_old_ones_exactly() -> None:
    times = [BASE_MS, BASE_MS + 7, BASE_MS + HOUR_MS, 5, -1]

    assert [normal({"timestamp": at})["timestamp"] for at in times] == [
        "<base+0>",
        "<base+7>",
        "<now>",
        5,
        -1,
    ]


def test_addresses_in_values_are_replaced() -> None:
    assert normal({"value": "PLAINTEXT://127.0.0.1:4711"}) == {"value": "PLAINTEXT://<address>"}


def test_a_truncated_batch_is_compared_by_its_size() -> None:
    whole = batch(b"one", b"two", at_ms=BASE_MS)

    described = describe_batches(whole + whole[:70])

    assert [each["baseOffset"] for each in described["batches"]] == [0]
    assert described["cutOff"] == 70


def test_a_declared_difference_covers_only_its_own_field() -> None:
    row = Difference(story="a/*", step="bad *", path="*errorCode", kafka=-1, ours=2, reason="why")
    (covered,) = compare_story("a/b", {"bad v1": {"errorCode": -1}}, {"bad v1": {"errorCode": 2}})
    (another,) = compare_story("a/b", {"bad v1": {"errorCode": -1}}, {"bad v1": {"errorCode": 87}})

    assert row.covers(covered)
    assert not row.covers(another)
