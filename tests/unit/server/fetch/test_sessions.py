"""Fetch sessions: creation, contents, and eviction."""

from itertools import count

import pytest

from barnabas.base.ids import Uuid
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from barnabas.server.fetch.sessions import EVICTION_MS, FetchSessions, Plan

pytestmark = pytest.mark.kernel

BY_NAME, BY_ID = 12, 13
ORDERS = Uuid(b"orders' topic id")


def sessions(slots: int = 10) -> FetchSessions:
    numbers = count(1)
    return FetchSessions(slots, lambda: next(numbers))


def request(
    session: int = 0, epoch: int = 0, *, partitions: tuple[int, ...] = (), forget: tuple[int, ...] = ()
) -> FetchRequest:
    return FetchRequest(
        session_id=session,
        session_epoch=epoch,
        topics=[
            FetchTopic(
                topic="orders",
                topic_id=ORDERS,
                partitions=[FetchPartition(partition=one, fetch_offset=5) for one in partitions],
            )
        ],
        forgotten_topics_data=[ForgottenTopic(topic="orders", topic_id=ORDERS, partitions=list(forget))],
    )


def indexes(plan: Plan) -> list[int]:
    return [wanted.asked.partition for wanted in plan.wanted]


def data(index: int, *, high_watermark: int = 10, records: bytes = b"", error: int = 0) -> PartitionData:
    return PartitionData(
        partition_index=index,
        high_watermark=high_watermark,
        log_start_offset=0,
        records=records,
        error_code=error,
    )


def test_a_full_fetch_opens_a_session_and_the_next_one_sends_only_changes() -> None:
    cache = sessions()

    first = cache.plan(request(partitions=(0, 1)), BY_NAME, now_ms=0)
    second = cache.plan(request(first.session_id, 1, partitions=(2,), forget=(0,)), BY_NAME, now_ms=1)

    assert first.session_id != 0
    assert not first.incremental
    assert second.session_id == first.session_id
    assert second.incremental
    assert indexes(second) == [1, 2]


def test_a_partition_named_again_replaces_its_fetch_position() -> None:
    cache = sessions()
    first = cache.plan(request(partitions=(0, 1)), BY_NAME, now_ms=0)
    again = request(first.session_id, 1, partitions=(0,))
    again.topics[0].partitions[0].fetch_offset = 77

    second = cache.plan(again, BY_NAME, now_ms=0)

    assert [wanted.asked.fetch_offset for wanted in second.wanted] == [77, 5]


def test_epochs_count_up_and_a_repeated_one_is_refused() -> None:
    cache = sessions()
    opened = cache.plan(request(partitions=(0,)), BY_NAME, now_ms=0)

    plans = [cache.plan(request(opened.session_id, epoch), BY_NAME, now_ms=0) for epoch in (1, 2, 2, 5)]

    assert [plan.error for plan in plans] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ]


def test_an_unknown_session_is_refused() -> None:
    plan = sessions().plan(request(99, 1), BY_NAME, now_ms=0)

    assert plan.error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_names_and_ids_cannot_be_mixed_in_a_session() -> None:
    cache = sessions()
    opened = cache.plan(request(partitions=(0,)), BY_NAME, now_ms=0)

    plan = cache.plan(request(opened.session_id, 1), BY_ID, now_ms=0)

    assert plan.error == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_final_epoch_ends_the_session_and_fetches_without_one() -> None:
    cache = sessions()
    opened = cache.plan(request(partitions=(0,)), BY_NAME, now_ms=0)

    last = cache.plan(request(opened.session_id, -1, partitions=(3,)), BY_NAME, now_ms=0)

    assert (last.session_id, indexes(last), len(cache)) == (0, [3], 0)


def test_a_new_full_fetch_replaces_the_session_it_names() -> None:
    cache = sessions()
    opened = cache.plan(request(partitions=(0,)), BY_NAME, now_ms=0)

    again = cache.plan(request(opened.session_id, 0, partitions=(0,)), BY_NAME, now_ms=0)

    assert again.session_id not in (0, opened.session_id)
    assert len(cache) == 1


def test_forgetting_everything_ends_the_session() -> None:
    cache = sessions()
    opened = cache.plan(request(partitions=(0,)), BY_NAME, now_ms=0)

    plan = cache.plan(request(opened.session_id, 1, forget=(0,)), BY_NAME, now_ms=0)

    assert (plan.session_id, plan.wanted, len(cache)) == (0, [], 0)


def test_a_full_cache_gives_no_session_until_one_is_stale() -> None:
    cache = sessions(slots=1)
    first = cache.plan(request(partitions=(0,)), BY_NAME, now_ms=0)

    soon = cache.plan(request(partitions=(0,)), BY_NAME, now_ms=EVICTION_MS)
    later = cache.plan(request(partitions=(0,)), BY_NAME, now_ms=EVICTION_MS + 1)

    assert first.session_id != 0
    assert soon.session_id == 0
    assert indexes(soon) == [0]
    assert later.session_id != 0
    assert len(cache) == 1


def test_a_session_in_use_is_not_stale() -> None:
    cache = sessions(slots=1)
    first = cache.plan(request(partitions=(0,)), BY_NAME, now_ms=0)
    cache.plan(request(first.session_id, 1), BY_NAME, now_ms=EVICTION_MS)

    other = cache.plan(request(partitions=(0,)), BY_NAME, now_ms=EVICTION_MS + 1)

    assert other.session_id == 0


def test_an_old_session_is_evicted_for_a_larger_one() -> None:
    cache = sessions(slots=1)
    small = cache.plan(request(partitions=(0,)), BY_NAME, now_ms=0)
    cache.plan(request(small.session_id, 1), BY_NAME, now_ms=EVICTION_MS)

    equal = cache.plan(request(partitions=(0,)), BY_NAME, now_ms=EVICTION_MS + 1)
    larger = cache.plan(request(partitions=(0, 1)), BY_NAME, now_ms=EVICTION_MS + 1)

    assert equal.session_id == 0
    assert larger.session_id != 0


def test_without_slots_there_are_no_sessions() -> None:
    assert sessions(slots=0).plan(request(partitions=(0,)), BY_NAME, now_ms=0).session_id == 0


def test_only_changes_are_news() -> None:
    wanted = sessions().plan(request(partitions=(0,)), BY_NAME, now_ms=0).wanted[0]

    told = [
        wanted.is_news(data(0)),
        wanted.is_news(data(0)),
        wanted.is_news(data(0, records=b"x")),
        wanted.is_news(data(0, high_watermark=11)),
        wanted.is_news(data(0, high_watermark=11, error=3)),
        wanted.is_news(data(0, high_watermark=11)),
        wanted.is_news(data(0, high_watermark=11)),
    ]

    assert told == [True, False, True, True, True, True, False]


def test_partitions_that_returned_records_are_served_last_next_time() -> None:
    cache = sessions()
    plan = cache.plan(request(partitions=(0, 1, 2)), BY_NAME, now_ms=0)

    cache.served(plan, [(plan.wanted[0], data(0, records=b"x")), (plan.wanted[1], data(1))])

    assert indexes(cache.plan(request(plan.session_id, 1), BY_NAME, now_ms=0)) == [1, 2, 0]
