"""CreateTopics (key 19): validate names, settings and replicas of new topics, and create them.

An error of one topic is in its result, and the others are created. With validate_only the response is the
same and nothing is written. If several brokers create a topic at once, the first succeeds; the others get
TOPIC_ALREADY_EXISTS.
"""

from collections import Counter
from collections.abc import Iterable
from random import Random

from barnabas.base.ids import Uuid
from barnabas.controller.assignments import manual, partition_record, placed
from barnabas.controller.config_rules import clear_elr_records, validate_topic_config
from barnabas.controller.decision import (
    PARTITIONS_PER_REQUEST_MAX,
    RECORDS_PER_REQUEST_MAX,
    Decision,
    Refused,
)
from barnabas.controller.effective import effective_values
from barnabas.controller.facts import Facts
from barnabas.controller.refusals import refusal
from barnabas.controller.topic_names import METADATA_TOPIC, colliding_topic, topic_name_error
from barnabas.metadata.image import TOPIC_RESOURCE, MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.stored.cluster_topics import ConfigRecord, TopicRecord

_FROM_DEFAULT = -1


def create_topics(image: MetadataImage, request: CreateTopicsRequest, facts: Facts) -> Decision:
    if _partitions_asked(request.topics, facts) > PARTITIONS_PER_REQUEST_MAX:
        message = "Excessively large number of partitions per request."
        return Decision((), refusal(request, ErrorCode.POLICY_VIOLATION, message))
    names = Counter(topic.name for topic in request.topics)
    records: list[object] = []
    results: dict[str, CreatableTopicResult] = {}
    for topic in request.topics:
        if topic.name in results:
            continue
        try:
            if names[topic.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            made, result = _create(image, topic, facts)
            records += made
        except Refused as refused:
            result = CreatableTopicResult(
                name=topic.name, error_code=refused.code, error_message=refused.message
            )
        results[topic.name] = result
    if len(records) > RECORDS_PER_REQUEST_MAX:
        message = "Unable to perform excessively large batch operation."
        return Decision((), refusal(request, ErrorCode.POLICY_VIOLATION, message))
    response = CreateTopicsResponse(topics=list(results.values()))
    return Decision(() if request.validate_only else tuple(records), response)


def _partitions_asked(topics: Iterable[CreatableTopic], facts: Facts) -> int:
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == _FROM_DEFAULT:
            total += facts.settings.num_partitions
        else:
            total += max(topic.num_partitions, 0)
    return total


def _create(
    image: MetadataImage, topic: CreatableTopic, facts: Facts
) -> tuple[list[object], CreatableTopicResult]:
    _check_name(image, topic.name)
    configs = _configs(image, topic, facts)
    assignments = _assignments(image, topic, facts)
    topic_id = new_topic_id(image, facts.rng)
    records: list[object] = [TopicRecord(name=topic.name, topic_id=topic_id)]
    config_records = [
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic.name, name=name, value=value)
        for name, value in configs.items()
    ]
    # Settings come before partitions, so that no log is opened without them.
    records += config_records
    records += clear_elr_records(image, config_records)
    records += [
        partition_record(image, topic_id, number, replicas) for number, replicas in enumerate(assignments)
    ]
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(assignments),
        replication_factor=len(assignments[0]),
        configs=[
            CreatableTopicConfigs(name=one.name, value=one.value, config_source=one.source)
            for one in effective_values(configs, image, facts.settings)
        ],
    )
    return records, result


def new_topic_id(image: MetadataImage, rng: Random) -> Uuid:
    """A new random (version 4) id. Small numbers are reserved: 1 is the metadata log."""
    while True:
        raw = bytearray(rng.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        topic_id = Uuid(bytes(raw))
        # Avoid a leading dash in the text form, which would look like an option on a command line.
        if topic_id not in image.topics_by_id and raw[0] >> 2 != 0b111110:
            return topic_id


def _check_name(image: MetadataImage, name: str) -> None:
    if name == METADATA_TOPIC:
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        )
    if name in image.topics:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    wrong = topic_name_error(name)
    if wrong is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, wrong)
    other = colliding_topic(name, image.topics)
    if other is not None:
        raise Refused(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}"
        )


def _configs(image: MetadataImage, topic: CreatableTopic, facts: Facts) -> dict[str, str]:
    unset = [one.name for one in topic.configs if one.value is None]
    if unset:
        raise Refused(
            ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(unset)}"
        )
    configs = {one.name: one.value for one in topic.configs if one.value is not None}
    validate_topic_config(image, configs, facts.settings)
    return configs


def _assignments(image: MetadataImage, topic: CreatableTopic, facts: Facts) -> list[tuple[int, ...]]:
    if topic.assignments:
        return _manual_assignments(image, topic)
    if topic.replication_factor < _FROM_DEFAULT or topic.replication_factor == 0:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < _FROM_DEFAULT or topic.num_partitions == 0:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    settings = facts.settings
    count = settings.num_partitions if topic.num_partitions == _FROM_DEFAULT else topic.num_partitions
    factor = topic.replication_factor
    if factor == _FROM_DEFAULT:
        factor = settings.default_replication_factor
    try:
        return placed(image, facts, count=count, replication_factor=factor)
    except Refused as refused:
        message = f"Unable to replicate the partition {factor} time(s): {refused.message}"
        raise Refused(refused.code, message) from None


def _manual_assignments(image: MetadataImage, topic: CreatableTopic) -> list[tuple[int, ...]]:
    prefix = "A manual partition assignment was specified, but "
    if topic.replication_factor != _FROM_DEFAULT:
        raise Refused(ErrorCode.INVALID_REQUEST, prefix + "replication factor was not set to -1.")
    if topic.num_partitions != _FROM_DEFAULT:
        raise Refused(ErrorCode.INVALID_REQUEST, prefix + "numPartitions was not set to -1.")
    found: dict[int, tuple[int, ...]] = {}
    factor: int | None = None
    for one in topic.assignments:
        number = one.partition_index
        if number in found:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {number}",
            )
        found[number] = manual(image, one.broker_ids, number=number, replication_factor=factor)
        factor = len(one.broker_ids)
    if sorted(found) != list(range(len(found))):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [found[number] for number in range(len(found))]
