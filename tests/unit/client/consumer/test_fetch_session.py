"""The client's side of fetch sessions: requests sent after each response."""

from functools import partial
from random import Random

import pytest

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.consumer.fetch_session import FetchSession, PartitionFetch, SessionRequest
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.server.fetch.sessions import FetchSessions

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
IDS = {"a": Uuid(b"a" * 16), "b": Uuid(b"b" * 16)}


def wanted(**offsets: int) -> dict[TopicPartition, PartitionFetch]:
    return {
        TopicPartition(name, 0): PartitionFetch(IDS[name], offset, 0, 100) for name, offset in offsets.items()
    }


def named(request: SessionRequest) -> dict[bytes, int]:
    return {topic.topic_id: topic.partitions[0].fetch_offset for topic in request.topics}


def begun() -> FetchSession:
    session = FetchSession()
    request = session.request(wanted(a=1, b=2), uses_ids=True)
    assert session.answered(FetchResponse(session_id=7), request)
    return session


def test_the_first_request_names_everything_and_asks_for_a_session() -> None:
    request = FetchSession().request(wanted(a=1, b=2), uses_ids=True)

    assert (request.session_id, request.epoch, request.is_full) == (0, 0, True)
    assert named(request) == {IDS["a"]: 1, IDS["b"]: 2}


def test_later_requests_name_changed_and_forgotten_partitions() -> None:
    session = begun()

    same = session.request(wanted(a=1, b=2), uses_ids=True)
    session.answered(FetchResponse(session_id=7), same)
    moved = session.request(wanted(a=5), uses_ids=True)

    assert (same.session_id, same.epoch, same.topics, same.forgotten) == (7, 1, [], [])
    assert (moved.epoch, named(moved)) == (2, {IDS["a"]: 5})
    assert [(topic.topic_id, topic.partitions) for topic in moved.forgotten] == [(IDS["b"], [0])]


def test_a_topic_of_the_same_name_and_another_id_replaces_the_first() -> None:
    session = begun()

    request = session.request({A: PartitionFetch(Uuid(b"c" * 16), 0, 0, 100)}, uses_ids=True)

    assert named(request) == {b"c" * 16: 0}
    assert {topic.topic_id for topic in request.forgotten} == set(IDS.values())


def test_without_a_session_every_request_is_full() -> None:
    session = FetchSession()
    session.answered(FetchResponse(session_id=0), session.request(wanted(a=1), uses_ids=True))

    again = session.request(wanted(a=1), uses_ids=True)

    assert (again.session_id, again.is_full, named(again)) == (0, True, {IDS["a"]: 1})


def test_a_session_that_the_broker_ended_is_not_named_again() -> None:
    session = begun()
    session.answered(FetchResponse(session_id=0), session.request(wanted(a=1), uses_ids=True))

    again = session.request(wanted(a=1), uses_ids=True)

    assert (again.session_id, again.epoch, named(again)) == (0, 0, {IDS["a"]: 1})


@pytest.mark.parametrize(
    ("code", "keeps_id"),
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 7),
        (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 7),
    ],
)
def test_a_refused_session_is_replaced_by_a_new_one(code: ErrorCode, keeps_id: int) -> None:
    session = begun()
    request = session.request(wanted(a=1, b=2), uses_ids=True)

    assert not session.answered(FetchResponse(error_code=code), request)
    again = session.request(wanted(a=1, b=2), uses_ids=True)

    assert (again.session_id, again.is_full) == (keeps_id, True)
    assert named(again) == {IDS["a"]: 1, IDS["b"]: 2}


def test_after_a_broken_connection_everything_is_named_again() -> None:
    session = begun()
    session.request(wanted(a=3, b=2), uses_ids=True)
    session.failed()

    again = session.request(wanted(a=3, b=2), uses_ids=True)

    assert (again.session_id, again.epoch, len(again.topics)) == (7, 0, 2)


def test_a_change_from_ids_to_names_begins_anew() -> None:
    session = begun()

    request = session.request(wanted(a=1), uses_ids=False)

    assert (request.is_full, request.topics[0].topic) == (True, "a")


def test_the_epoch_begins_again_with_one() -> None:
    session = begun()
    session._epoch = 2**31 - 1
    session.answered(FetchResponse(session_id=7), session.request(wanted(a=1), uses_ids=True))

    assert session.request(wanted(a=1), uses_ids=True).epoch == 1


@pytest.mark.parametrize("seed", range(30))
def test_client_and_broker_agree_on_the_session(seed: int) -> None:
    """Whatever is lost, the broker fetches exactly the partitions that the client wants."""
    dice = Random(seed)
    broker = FetchSessions(dice.choice((0, 5)), partial(dice.randrange, 1, 1000))
    session = FetchSession()
    for _ in range(60):
        some = [name for name in IDS if dice.random() < 0.8] or ["a"]
        want = wanted(**{name: dice.randrange(3) for name in some})
        sent = session.request(want, uses_ids=True)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            session_id=sent.session_id,
            session_epoch=sent.epoch,
            topics=sent.topics,
            forgotten_topics_data=sent.forgotten,
        )
        if dice.random() < 0.1:
            # The request is lost.
            session.failed()
            continue
        plan = broker.plan(request, 18, 0)
        if dice.random() < 0.1:
            # The response is lost.
            session.failed()
            continue
        if dice.random() < 0.1:
            broker._sessions.clear()
        if session.answered(FetchResponse(error_code=plan.error, session_id=plan.session_id), sent):
            fetched = {one.topic: one.asked.fetch_offset for one in plan.wanted}
            assert fetched == {one.topic_id: one.offset for one in want.values()}
