"""DeleteTopics (key 20): by name or by id, each topic at most once per request."""

from collections import Counter
from collections.abc import Iterator

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.controller.decision import RECORDS_PER_REQUEST_MAX, Decision
from barnabas.controller.facts import Facts
from barnabas.controller.refusals import refusal
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.protocol.stored.cluster_topics import RemoveTopicRecord

_UNKNOWN_NAME = "This server does not host this topic-partition."
_UNKNOWN_ID = "This server does not host this topic ID."


def delete_topics(image: MetadataImage, request: DeleteTopicsRequest, facts: Facts) -> Decision:
    if not facts.settings.delete_topic_enable:
        return Decision((), refusal(request, ErrorCode.TOPIC_DELETION_DISABLED))
    results = list(_results(image, [*map(_by_name, request.topic_names), *request.topics]))
    doomed = [one.topic_id for one in results if one.error_code == ErrorCode.NONE]
    if len(doomed) > RECORDS_PER_REQUEST_MAX:
        message = "Unable to perform excessively large batch operation."
        return Decision((), refusal(request, ErrorCode.POLICY_VIOLATION, message))
    records = tuple(RemoveTopicRecord(topic_id=topic_id) for topic_id in doomed)
    return Decision(records, DeleteTopicsResponse(responses=results))


def _by_name(name: str) -> DeleteTopicState:
    return DeleteTopicState(name=name)


def _results(image: MetadataImage, asked: list[DeleteTopicState]) -> Iterator[DeletableTopicResult]:
    """One result per requested topic, even if it is requested several times."""
    names = Counter(one.name for one in asked if one.topic_id == ZERO_UUID)
    ids = Counter(one.topic_id for one in asked if one.name is None)
    answered: set[tuple[str | None, Uuid]] = set()
    for one in asked:
        if one.name is not None and one.topic_id != ZERO_UUID:
            yield _failed(one, "You may not specify both topic name and topic id.")
        elif one.name is None and one.topic_id == ZERO_UUID:
            yield _failed(one, "Neither topic name nor id were specified.")
        elif (one.name, one.topic_id) not in answered:
            answered.add((one.name, one.topic_id))
            if one.name is None and ids[one.topic_id] > 1:
                yield _failed(one, "Duplicate topic id.")
            elif one.name is not None and names[one.name] > 1:
                yield _failed(one, "Duplicate topic name.")
            else:
                found = _result(image, one, names, ids)
                if found is not None:
                    yield found


def _result(
    image: MetadataImage, one: DeleteTopicState, names: Counter[str | None], ids: Counter[Uuid]
) -> DeletableTopicResult | None:
    """The result; None for a topic that is also requested by name, because its result is reported there."""
    if one.name is None:
        topic = image.topics_by_id.get(one.topic_id)
        if topic is None:
            return DeletableTopicResult(
                name=None,
                topic_id=one.topic_id,
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
                error_message=_UNKNOWN_ID,
            )
        if names[topic.name] == 1:
            return None
        return DeletableTopicResult(name=topic.name, topic_id=topic.id)
    topic = image.topics.get(one.name)
    if topic is None:
        return DeletableTopicResult(
            name=one.name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error_message=_UNKNOWN_NAME
        )
    if ids[topic.id]:
        return DeletableTopicResult(
            name=topic.name,
            topic_id=topic.id,
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="The provided topic name maps to an ID that was already supplied.",
        )
    return DeletableTopicResult(name=topic.name, topic_id=topic.id)


def _failed(one: DeleteTopicState, message: str) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=one.name, topic_id=one.topic_id, error_code=ErrorCode.INVALID_REQUEST, error_message=message
    )
