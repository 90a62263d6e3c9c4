"""CreatePartitions (key 37): add partitions to a topic."""

from collections import Counter

from barnabas.controller.assignments import manual, partition_record, placed
from barnabas.controller.decision import (
    PARTITIONS_PER_REQUEST_MAX,
    RECORDS_PER_REQUEST_MAX,
    Decision,
    Refused,
)
from barnabas.controller.facts import Facts
from barnabas.controller.refusals import refusal
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from barnabas.protocol.stored.cluster_topics import PartitionRecord


def create_partitions(image: MetadataImage, request: CreatePartitionsRequest, facts: Facts) -> Decision:
    names = Counter(topic.name for topic in request.topics)
    records: list[PartitionRecord] = []
    results: dict[str, CreatePartitionsTopicResult] = {}
    for topic in request.topics:
        if topic.name in results:
            continue
        result = CreatePartitionsTopicResult(name=topic.name)
        try:
            if names[topic.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            records += _create(image, topic, facts)
        except Refused as refused:
            result.error_code, result.error_message = refused.code, refused.message
        results[topic.name] = result
    if len(records) > RECORDS_PER_REQUEST_MAX:
        message = "Unable to perform excessively large batch operation."
        return Decision((), refusal(request, ErrorCode.POLICY_VIOLATION, message))
    response = CreatePartitionsResponse(results=list(results.values()))
    return Decision(() if request.validate_only else tuple(records), response)


def _create(image: MetadataImage, asked: CreatePartitionsTopic, facts: Facts) -> list[PartitionRecord]:
    topic = image.topics.get(asked.name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    start = len(topic.partitions)
    if asked.count == start:
        raise Refused(ErrorCode.INVALID_PARTITIONS, f"Topic already has {start} partition(s).")
    if asked.count < start:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {asked.name} currently has {start} partition(s); "
            f"{asked.count} would not be an increase.",
        )
    additional = asked.count - start
    if additional > PARTITIONS_PER_REQUEST_MAX:
        raise Refused(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    factor = len(topic.partitions[0].replicas)
    if asked.assignments is None:
        assignments = placed(image, facts, count=additional, replication_factor=factor)
    else:
        given = asked.assignments
        if len(given) != additional:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {additional} additional partition(s), but only {len(given)} "
                "assignment(s) were specified.",
            )
        assignments = [
            manual(image, one.broker_ids, number=start + at, replication_factor=factor)
            for at, one in enumerate(given)
        ]
    return [
        partition_record(image, topic.id, start + at, replicas) for at, replicas in enumerate(assignments)
    ]
