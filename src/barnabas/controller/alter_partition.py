"""AlterPartition (key 56): a partition leader changes its ISR.

v2 has replica ids; v3 adds their broker epochs, to detect a replica that has since restarted. A leader
with outdated metadata gets an error, and retries.
"""

from barnabas.base.ids import Uuid
from barnabas.controller.decision import Decision, Refused, check_broker_epoch
from barnabas.controller.effective import TopicRules
from barnabas.controller.facts import Facts
from barnabas.controller.leadership import Placed, change_of
from barnabas.controller.partition_change import RECOVERED, RECOVERING, Election
from barnabas.controller.refusals import refusal
from barnabas.metadata.image import MetadataImage, PartitionImage, TopicImage
from barnabas.metadata.partition import LEADER_UNCHANGED, altered
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.replicas import (
    AlterPartitionPartitionData,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
    BrokerState,
)
from barnabas.protocol.stored.cluster_topics import PartitionChangeRecord

_EPOCH_NOT_GIVEN = -1


def alter_partition(image: MetadataImage, request: AlterPartitionRequest, facts: Facts) -> Decision:
    try:
        check_broker_epoch(image, request.broker_id, request.broker_epoch)
    except Refused as refused:
        return Decision((), refusal(request, refused.code))
    rules = TopicRules(image, facts.settings)
    records: list[PartitionChangeRecord] = []
    topics = []
    seen: set[tuple[Uuid, int]] = set()
    for asked in request.topics:
        topic = image.topics_by_id.get(asked.topic_id)
        answers = []
        for one in asked.partitions:
            try:
                if (asked.topic_id, one.partition_index) in seen:
                    # Only the first change counts, because the second was not made on top of it.
                    raise Refused(ErrorCode.INVALID_UPDATE_VERSION)
                seen.add((asked.topic_id, one.partition_index))
                if topic is None:
                    raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
                answers.append(_alter(image, topic, one, request.broker_id, rules, records))
            except Refused as refused:
                answers.append(_failed(one.partition_index, refused.code))
        topics.append(AlterPartitionResponseTopicData(topic_id=asked.topic_id, partitions=answers))
    return Decision(tuple(records), AlterPartitionResponse(topics=topics), atomic=False)


def _alter(
    image: MetadataImage,
    topic: TopicImage,
    asked: AlterPartitionPartitionData,
    broker_id: int,
    rules: TopicRules,
    records: list[PartitionChangeRecord],
) -> AlterPartitionResponsePartitionData:
    number = asked.partition_index
    if not 0 <= number < len(topic.partitions):
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = topic.partitions[number]
    isr = asked.new_isr_with_epochs or [BrokerState(broker_id=one) for one in asked.new_isr]
    _check_epochs(partition, asked, broker_id)
    _check_isr(image, partition, isr, asked.leader_recovery_state)
    change = change_of(image, rules, Placed(topic, number))
    change.isr = [one.broker_id for one in isr]
    change.leader_recovery_state = asked.leader_recovery_state
    if rules.allows_unclean(topic.name):
        change.election = Election.UNCLEAN
    record = change.record()
    if record is not None:
        records.append(record)
        if record.leader not in (LEADER_UNCHANGED, broker_id):
            # The change completed a reassignment that removed the leader: it stands, but the response is an
            # error.
            return _failed(number, ErrorCode.NEW_LEADER_ELECTED)
        partition = altered(partition, record)
    return AlterPartitionResponsePartitionData(
        partition_index=number,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _check_epochs(partition: PartitionImage, asked: AlterPartitionPartitionData, broker_id: int) -> None:
    if asked.leader_epoch > partition.leader_epoch or asked.partition_epoch > partition.partition_epoch:
        # The leader has newer metadata, so another controller must be active.
        raise Refused(ErrorCode.NOT_CONTROLLER)
    if asked.leader_epoch < partition.leader_epoch:
        raise Refused(ErrorCode.FENCED_LEADER_EPOCH)
    if broker_id != partition.leader:
        raise Refused(ErrorCode.INVALID_REQUEST)
    if asked.partition_epoch < partition.partition_epoch:
        raise Refused(ErrorCode.INVALID_UPDATE_VERSION)


def _check_isr(
    image: MetadataImage, partition: PartitionImage, isr: list[BrokerState], recovery: int
) -> None:
    ids = [one.broker_id for one in isr]
    is_known = set(ids) <= set(partition.replicas) and len(set(ids)) == len(ids)
    if not is_known or partition.leader not in ids or recovery not in (RECOVERED, RECOVERING):
        raise Refused(ErrorCode.INVALID_REQUEST)
    if recovery == RECOVERING and (len(ids) > 1 or partition.leader_recovery_state == RECOVERED):
        raise Refused(ErrorCode.INVALID_REQUEST)
    for one in isr:
        broker = image.brokers.get(one.broker_id)
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            raise Refused(ErrorCode.INELIGIBLE_REPLICA)
        if one.broker_epoch not in (_EPOCH_NOT_GIVEN, broker.epoch):
            raise Refused(ErrorCode.INELIGIBLE_REPLICA)


def _failed(number: int, code: ErrorCode) -> AlterPartitionResponsePartitionData:
    return AlterPartitionResponsePartitionData(partition_index=number, error_code=code)
