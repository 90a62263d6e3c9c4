"""AssignReplicasToDirs (key 73): a broker with several directories reports the directories of replicas."""

from barnabas.base.ids import Uuid
from barnabas.controller.decision import Decision, Refused, check_broker_epoch
from barnabas.controller.effective import TopicRules
from barnabas.controller.facts import Facts
from barnabas.controller.leadership import Placed, change_of, has_online_directory, updates
from barnabas.controller.refusals import refusal
from barnabas.metadata.changes import Changes
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.log_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)


def assign_replicas(image: MetadataImage, request: AssignReplicasToDirsRequest, facts: Facts) -> Decision:
    try:
        check_broker_epoch(image, request.broker_id, request.broker_epoch)
    except Refused as refused:
        return Decision((), refusal(request, refused.code))
    assigning = _Assigning(image, request.broker_id, facts)
    response = AssignReplicasToDirsResponse(
        directories=[
            AssignReplicasToDirsResponseDirectoryData(
                id=directory.id,
                topics=[
                    AssignReplicasToDirsResponseTopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            AssignReplicasToDirsResponsePartitionData(
                                partition_index=one.partition_index,
                                error_code=assigning.assign(
                                    topic.topic_id, one.partition_index, directory.id
                                ),
                            )
                            for one in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )
    return Decision(tuple(assigning.finish()), response, atomic=False)


class _Assigning:
    """Collects the assignments of one broker."""

    def __init__(self, image: MetadataImage, broker_id: int, facts: Facts) -> None:
        self._image = image
        self._broker_id = broker_id
        self._facts = facts
        self._rules = TopicRules(image, facts.settings)
        self._changes = Changes(image)
        self._records: list[object] = []
        # Partitions in directories that have failed.
        self._offline: list[tuple[Uuid, int]] = []

    def assign(self, topic_id: Uuid, number: int, directory: Uuid) -> ErrorCode:
        try:
            placed = _placed(self._image, topic_id, number, self._broker_id)
        except Refused as refused:
            return refused.code
        change = change_of(self._image, self._rules, placed)
        change.directories = {self._broker_id: directory}
        record = change.record()
        if record is not None:
            self._records.append(record)
            self._changes.apply(record)
        if not has_online_directory(self._image, self._broker_id, directory):
            self._offline.append((topic_id, number))
        return ErrorCode.NONE

    def finish(self) -> list[object]:
        if not self._offline:
            return self._records
        # Replicas in a directory that has since failed are offline.
        image = self._image
        after = self._changes.finish(image.offset, image.epoch, image.append_time_ms)
        affected = [Placed(after.topics_by_id[topic_id], number) for topic_id, number in self._offline]
        return [*self._records, *updates(after, self._facts.settings, affected, removed=self._broker_id)]


def _placed(image: MetadataImage, topic_id: Uuid, number: int, broker_id: int) -> Placed:
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
    if not 0 <= number < len(topic.partitions):
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if broker_id not in topic.partitions[number].replicas:
        raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return Placed(topic, number)
