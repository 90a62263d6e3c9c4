"""DescribeTopicPartitions: topics in order, page by page."""

import asyncio

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from barnabas.server.handlers.topic_partitions import API
from support.decided import Decided, one_broker

EVERYTHING = 3576
NOT_ASKED = -2147483648


def asked(
    *names: str, limit: int = 2000, at: tuple[str, int] | None = None
) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if at is None else Cursor(topic_name=at[0], partition_index=at[1]),
    )


def pages(*more: str) -> Decided:
    """The topics a and b of three partitions each."""
    broker = one_broker()
    for name in ("b", "a", *more):
        broker.create(name, 3)
    return broker


Page = tuple[list[tuple[str | None, int, list[int]]], tuple[str, int] | None]


def read(answer: DescribeTopicPartitionsResponse) -> Page:
    topics = [
        (one.name, one.error_code, [part.partition_index for part in one.partitions]) for one in answer.topics
    ]
    cursor = answer.next_cursor
    return topics, None if cursor is None else (cursor.topic_name, cursor.partition_index)


def page(broker: Decided, body: DescribeTopicPartitionsRequest) -> Page:
    return read(broker.ask(API, body, 0))


A, B = ("a", 0, [0, 1, 2]), ("b", 0, [0, 1, 2])
UNKNOWN, ILLEGAL = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION


def test_topics_come_in_the_order_of_their_names_and_each_once() -> None:
    assert page(pages(), asked("b", "a", "b")) == ([A, B], None)


def test_all_topics_if_none_is_named() -> None:
    assert page(pages("c"), asked()) == ([A, B, ("c", 0, [0, 1, 2])], None)


def test_all_fields_of_a_partition_are_filled() -> None:
    broker = one_broker()
    broker.register(2)
    topic_id = broker.create("orders", assigned=[[1, 2]], configs={"min.insync.replicas": "2"})
    broker.heartbeat(2, want_fence=True)

    [topic] = broker.ask(API, asked("orders"), 0).topics

    [part] = topic.partitions
    assert (topic.topic_id, topic.is_internal, topic.topic_authorized_operations) == (
        topic_id,
        False,
        EVERYTHING,
    )
    assert (part.leader_id, part.replica_nodes, part.isr_nodes) == (1, [1, 2], [1])
    assert (part.eligible_leader_replicas, part.last_known_elr, part.offline_replicas) == ([2], [], [2])


def test_a_leader_without_the_clients_listener_is_omitted() -> None:
    broker = Decided(listener="INSIDE")
    broker.register(1)
    broker.create("orders")

    [part] = broker.ask(API, asked("orders"), 0).topics[0].partitions

    assert (part.error_code, part.leader_id, part.offline_replicas) == (0, -1, [1])


def test_unknown_topics_are_in_order_with_authorized_operations() -> None:
    answer = pages().ask(API, asked("zz", "b", "a/b"), 0)

    assert read(answer) == ([("a/b", ILLEGAL, []), B, ("zz", UNKNOWN, [])], None)
    assert [one.topic_authorized_operations for one in answer.topics] == [EVERYTHING] * 3


def test_a_topic_without_a_name_fails_the_whole_request() -> None:
    answer = pages().ask(API, asked("", "a"), 0)

    assert read(answer)[0] == [
        ("", ErrorCode.UNKNOWN_SERVER_ERROR, []),
        ("a", ErrorCode.UNKNOWN_SERVER_ERROR, []),
    ]
    assert [one.topic_authorized_operations for one in answer.topics] == [NOT_ASKED] * 2


@pytest.mark.parametrize("limit", [1, 0, -1, -(2**31)])
def test_a_page_has_one_partition_at_least(limit: int) -> None:
    assert page(pages(), asked("a", "b", limit=limit)) == ([("a", 0, [0])], ("a", 1))


def test_a_page_may_end_within_a_topic_or_behind_one() -> None:
    broker = pages()

    assert page(broker, asked("a", "b", limit=4)) == ([A, ("b", 0, [0])], ("b", 1))
    assert page(broker, asked("a", "b", limit=3)) == ([A], ("b", 0))
    assert page(broker, asked("a", "b", limit=6)) == ([A, B], None)


def test_the_next_page_may_begin_with_a_topic_that_does_not_exist() -> None:
    assert page(pages(), asked("a", "zz", limit=3)) == ([A], ("zz", 0))


def test_unknown_topics_do_not_count_towards_the_limit() -> None:
    assert page(pages(), asked("0", "a", limit=3)) == ([("0", UNKNOWN, []), A], None)


def test_the_limit_of_the_broker_is_the_smaller_one() -> None:
    broker = one_broker({"max.request.partition.size.limit": "2"})
    broker.create("a", 3)

    assert page(broker, asked("a")) == ([("a", 0, [0, 1])], ("a", 2))


def test_a_page_begins_at_the_cursor() -> None:
    broker = pages()

    assert page(broker, asked("a", "b", at=("a", 2))) == ([("a", 0, [2]), B], None)
    assert page(broker, asked("a", "b", at=("b", 1))) == ([("b", 0, [1, 2])], None)
    assert page(broker, asked(at=("b", 2))) == ([("b", 0, [2])], None)


def test_a_cursor_behind_the_last_partition_lists_the_topic_without_any() -> None:
    assert page(pages(), asked("a", "b", at=("a", 3))) == ([("a", 0, []), B], None)


def test_a_cursor_over_all_topics_may_name_a_deleted_topic() -> None:
    broker = pages()

    assert page(broker, asked(at=("aa", 1))) == ([B], None)
    assert page(broker, asked(at=("z", 0))) == ([], None)


@pytest.mark.parametrize("at", [("a", -1), ("ab", 0), ("z", 0), ("", 0)])
def test_a_cursor_outside_the_requested_topics_is_rejected(at: tuple[str, int]) -> None:
    assert page(pages(), asked("a", "b", at=at)) == (
        [("a", ErrorCode.INVALID_REQUEST, []), ("b", ErrorCode.INVALID_REQUEST, [])],
        None,
    )


def test_pages_put_together_are_everything() -> None:
    broker = pages("c", "d")
    seen: list[tuple[str | None, int]] = []
    at: tuple[str, int] | None = None

    for _ in range(6):
        topics, at = page(broker, asked(limit=2, at=at))
        seen += [(name, index) for name, _, indexes in topics for index in indexes]

    assert at is None
    assert seen == [(name, index) for name in "abcd" for index in range(3)]


def test_many_names_are_answered_in_slices_and_in_order() -> None:
    broker = one_broker()
    broker.create("none-5-and-more")
    names = [f"none-{number}" for number in range(20_000)]

    answer = asyncio.run(broker.ask_and_wait(API, asked(*names, "none-5-and-more"), 0))

    assert [one.name for one in answer.topics] == sorted([*names, "none-5-and-more"])
