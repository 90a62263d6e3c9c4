"""OffsetCommit and OffsetFetch, one attempt each."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.errors import Refused, refused
from barnabas.client.group.coordinator import Coordinator
from barnabas.client.group.subscription import by_topic
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

# Version 10 replaces topic names by ids, which has no benefit for a client that knows the names.
_NAMES_UNTIL: Final = 9
_GROUPS_FROM: Final = 8
_OFFSET_MAX: Final = (1 << 63) - 1


class OffsetAndMetadata(NamedTuple):
    """The next offset to read, user metadata, and the leader epoch of the last record (-1: none)."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


def offsets_given(
    offsets: Mapping[tuple[str, int], int | OffsetAndMetadata],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Normalize offsets given by the user; ValueError for an invalid offset."""
    wanted = {
        TopicPartition(*tp): OffsetAndMetadata(one) if isinstance(one, int) else one
        for tp, one in offsets.items()
    }
    for tp, one in wanted.items():
        check_offset(tp, one.offset)
    return wanted


def check_offset(tp: TopicPartition, offset: int) -> None:
    if not 0 <= offset <= _OFFSET_MAX:
        raise ValueError(f"offset {offset} of {tp} is not between 0 and {_OFFSET_MAX}")


class Committer(NamedTuple):
    """Identity for commits; generation -1 and an empty member id: a group without members."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None


async def send_commit(
    coordinator: Coordinator, committer: Committer, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> dict[TopicPartition, ErrorCode]:
    """Send OffsetCommit and return the error code of each partition."""
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=one.offset,
                    committed_leader_epoch=one.leader_epoch,
                    committed_metadata=one.metadata,
                )
                for number in numbers
                for one in (offsets[TopicPartition(topic, number)],)
            ],
        )
        for topic, numbers in by_topic(offsets).items()
    ]
    request = OffsetCommitRequest(
        group_id=committer.group_id,
        generation_id_or_member_epoch=committer.generation,
        member_id=committer.member_id,
        group_instance_id=committer.instance_id,
        topics=topics,
    )
    answer = await coordinator.ask(request, newest=_NAMES_UNTIL)
    codes = {
        TopicPartition(topic.name, one.partition_index): ErrorCode.of(one.error_code)
        for topic in answer.topics
        for one in topic.partitions
    }
    for code in set(codes.values()):
        coordinator.check(code)
    # A partition missing in the response is not committed.
    return {tp: codes.get(tp, ErrorCode.UNKNOWN_SERVER_ERROR) for tp in offsets}


async def fetch_committed(
    coordinator: Coordinator, reader: Committer, tps: Iterable[TopicPartition], *, require_stable: bool
) -> dict[TopicPartition, OffsetAndMetadata | Refused | None]:
    """Return the committed offset of each partition, None if there is none. Raise errors of the group."""
    wanted = by_topic(tps)
    asked = OffsetFetchRequestGroup(
        group_id=reader.group_id,
        member_id=reader.member_id or None,
        member_epoch=reader.generation,
        topics=[
            OffsetFetchRequestTopics(name=topic, partition_indexes=numbers)
            for topic, numbers in wanted.items()
        ],
    )
    before_8 = [
        OffsetFetchRequestTopic(name=topic, partition_indexes=numbers) for topic, numbers in wanted.items()
    ]
    newest = await coordinator.version_of(ApiKey.OFFSET_FETCH)
    request = (
        OffsetFetchRequest(groups=[asked], require_stable=require_stable)
        if newest >= _GROUPS_FROM
        else OffsetFetchRequest(group_id=reader.group_id, topics=before_8, require_stable=require_stable)
    )
    answer = await coordinator.ask(request, newest=min(newest, _NAMES_UNTIL))
    entry = next(iter(answer.groups), answer)
    if entry.error_code != ErrorCode.NONE:
        coordinator.check(entry.error_code)
        raise refused(entry.error_code, about=f"group {reader.group_id}")
    found: dict[TopicPartition, OffsetAndMetadata | Refused | None] = dict.fromkeys(
        TopicPartition(topic, number) for topic, numbers in wanted.items() for number in numbers
    )
    for topic in entry.topics:
        for one in topic.partitions:
            tp = TopicPartition(topic.name, one.partition_index)
            if one.error_code != ErrorCode.NONE:
                found[tp] = refused(one.error_code, about=f"committed offset of {tp}")
            elif one.committed_offset >= 0:
                found[tp] = OffsetAndMetadata(
                    one.committed_offset, one.metadata or "", one.committed_leader_epoch
                )
    return found
