"""ConsumerGroupDescribe (key 69), versions 0-1, for one group. Deleted topics are omitted."""

from collections.abc import Iterable, Mapping

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import ConsumerMember
from barnabas.coordinators.group.consumer.target import preferred_assignor
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseTopicPartitions,
    DescribedGroup,
    Member,
)

# Values of member_type.
_CLASSIC = 0
_CONSUMER = 1


def described(group: ConsumerGroup, image: MetadataImage, assignors: tuple[str, ...]) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group, None, assignors),
        members=[_member(group, member, image) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, image: MetadataImage) -> Member:
    # Partitions pending revocation still belong to the member.
    held: dict[Uuid, list[int]] = {}
    for part in (member.assigned, member.revoking):
        for topic_id, partitions in part.items():
            held.setdefault(topic_id, []).extend(partitions)
    return Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(held, image),
        target_assignment=_assignment(group.targets.get(member.id, {}), image),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _assignment(
    partitions: Mapping[Uuid, Iterable[int]], image: MetadataImage
) -> ConsumerGroupDescribeResponseAssignment:
    return ConsumerGroupDescribeResponseAssignment(
        topic_partitions=[
            ConsumerGroupDescribeResponseTopicPartitions(
                topic_id=topic_id, topic_name=image.topics_by_id[topic_id].name, partitions=sorted(numbers)
            )
            for topic_id, numbers in partitions.items()
            if topic_id in image.topics_by_id
        ]
    )
