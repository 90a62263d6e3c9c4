"""Topics made and removed by a broker: what it decides itself, and how the controller's answers arrive."""

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.server.handlers.topics import APIS
from support.decided import one_broker, row
from support.log.managers import on_a_loop

CREATE = row(APIS, ApiKey.CREATE_TOPICS)
DELETE = row(APIS, ApiKey.DELETE_TOPICS)
PARTITIONS = row(APIS, ApiKey.CREATE_PARTITIONS)
BY_ID_FROM = 6


def creating(*names: str, partitions: int = -1, timeout_ms: int = 1000, **more: bool) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms, **more)


def deleting(*names: str, version: int, timeout_ms: int = 1000) -> DeleteTopicsRequest:
    if version >= BY_ID_FROM:
        return DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in names], timeout_ms=timeout_ms
        )
    return DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)


def growing(name: str, count: int, *, timeout_ms: int = 1000) -> CreatePartitionsRequest:
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=timeout_ms)


# CreateTopics


@on_a_loop
async def test_a_topic_is_made_in_every_version() -> None:
    broker = one_broker()

    for version in CREATE.versions:
        name = f"v{version}"
        [made] = (await broker.ask_and_wait(CREATE, creating(name, partitions=2), version)).topics

        assert (made.name, made.error_code) == (name, ErrorCode.NONE)
        assert len(broker.image.topics[name].partitions) == 2
        assert made.num_partitions == (2 if version >= 5 else -1)
        assert made.topic_id == (broker.image.topics[name].id if version >= 7 else ZERO_UUID)


@on_a_loop
async def test_refused_topics_are_returned_with_created_ones() -> None:
    broker = one_broker()
    broker.create("old")

    answer = await broker.ask_and_wait(CREATE, creating("old", "new"), 7)

    codes = {one.name: one.error_code for one in answer.topics}
    assert codes == {"old": ErrorCode.TOPIC_ALREADY_EXISTS, "new": ErrorCode.NONE}


@on_a_loop
async def test_validate_only_makes_nothing() -> None:
    broker = one_broker()

    [said] = (await broker.ask_and_wait(CREATE, creating("new", validate_only=True), 7)).topics

    assert said.error_code == ErrorCode.NONE
    assert not broker.image.topics


# DeleteTopics


@on_a_loop
async def test_a_topic_is_deleted_in_every_version() -> None:
    broker = one_broker()

    for version in DELETE.versions:
        broker.create("passing")
        answer = await broker.ask_and_wait(DELETE, deleting("passing", version=version), version)

        assert [(one.name, one.error_code) for one in answer.responses] == [("passing", 0)]
        assert not broker.image.topics


@on_a_loop
async def test_a_topic_is_deleted_by_its_id() -> None:
    broker = one_broker()
    topic_id = broker.create("passing")
    body = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=topic_id)], timeout_ms=1000)

    [said] = (await broker.ask_and_wait(DELETE, body, 6)).responses

    assert (said.name, said.topic_id, said.error_code) == ("passing", topic_id, ErrorCode.NONE)
    assert not broker.image.topics


@pytest.mark.parametrize("version", DELETE.versions)
@pytest.mark.parametrize("timeout_ms", [1000, 0])
def test_nothing_is_deleted_where_the_settings_forbid_it(version: int, timeout_ms: int) -> None:
    broker = one_broker({"delete.topic.enable": "false"})
    broker.create("kept")

    answer = broker.ask(
        DELETE, deleting("kept", "none", "none", version=version, timeout_ms=timeout_ms), version
    )

    code = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
    assert answer.responses == [
        DeletableTopicResult(name=name, error_code=code, error_message=None)
        for name in ("kept", "none", "none")
    ]
    assert "kept" in broker.image.topics


# CreatePartitions


@on_a_loop
async def test_a_topic_grows_in_every_version() -> None:
    broker = one_broker()
    broker.create("growing")

    for version in PARTITIONS.versions:
        count = version + 2
        answer = await broker.ask_and_wait(PARTITIONS, growing("growing", count), version)

        assert [(one.name, one.error_code) for one in answer.results] == [("growing", 0)]
        assert len(broker.image.topics["growing"].partitions) == count


@on_a_loop
async def test_a_topic_does_not_shrink() -> None:
    broker = one_broker()
    broker.create("growing", 3)

    [said] = (await broker.ask_and_wait(PARTITIONS, growing("growing", 2), 3)).results

    assert said.error_code == ErrorCode.INVALID_PARTITIONS
    assert len(broker.image.topics["growing"].partitions) == 3


# Too late


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_request_with_an_expired_timeout_is_not_forwarded(timeout_ms: int) -> None:
    broker = one_broker()
    broker.create("t")
    late = ErrorCode.REQUEST_TIMED_OUT

    made = broker.ask(CREATE, creating("new", "newer", timeout_ms=timeout_ms), 7)
    deleted = broker.ask(DELETE, deleting("t", version=6, timeout_ms=timeout_ms), 6)
    grown = broker.ask(PARTITIONS, growing("t", 5, timeout_ms=timeout_ms), 3)

    assert made.topics == [
        CreatableTopicResult(name=name, error_code=late, error_message=None) for name in ("new", "newer")
    ]
    assert deleted.responses == [DeletableTopicResult(name="t", error_code=late, error_message=None)]
    assert grown.results == [CreatePartitionsTopicResult(name="t", error_code=late, error_message=None)]
    assert broker.channel.asked == []


def test_a_request_that_failed_as_a_whole_fails_in_all_its_parts() -> None:
    broker = one_broker()
    code = ErrorCode.UNKNOWN_SERVER_ERROR

    made = broker.refuse(CREATE, creating("a", "b"), 7, code)
    deleted = broker.refuse(DELETE, deleting("a", "b", version=1), 1, code)
    grown = broker.refuse(PARTITIONS, growing("a", 5), 3, code)

    assert [(one.name, one.error_code) for one in made.topics] == [("a", code), ("b", code)]
    assert [(one.name, one.error_code) for one in deleted.responses] == [("a", code), ("b", code)]
    assert [(one.name, one.error_code) for one in grown.results] == [("a", code)]
