"""Producers that commit offsets of groups in their transactions, and the markers that end those.

What each is told is what Kafka says to it: for nobody in particular everything is taken, and who says that it
is a member must be one.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.coordinators.decision.outcome import Caller, EndMarker
from barnabas.coordinators.group.classic.group import ClassicGroup
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.member import ConsumerMember
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from support.group.model import Gone, GroupWorld, NotTaken
from support.group.model_clients import HOST, NO_SUCH_EPOCH, GroupClient
from support.group.model_offsets import TOO_LONG, Committed, Ended, OffsetModel, Place, Written

PRODUCERS = (70, 71, 72)
CALLER = Caller("producer", HOST, 5)
# Which epoch a producer says, against the last one that the log has: its own, that of a zombie, one that was
# raised.
EPOCHS = (0, 0, 0, -1, 1)
_FIRST_EPOCH = 3
_NOT_A_MEMBER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})
_TAKEN = frozenset({ErrorCode.NONE})
_ILLEGAL = frozenset({ErrorCode.ILLEGAL_GENERATION})


class Speaker(NamedTuple):
    """For whom a producer says that it commits; by itself for nobody."""

    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


def speaker(who: GroupClient | None, lie: str) -> Speaker:
    """What a producer says that commits for a client, and does not tell the truth of all of it."""
    if who is None:
        return Speaker()
    generation, member_id, instance_id = who.epoch_or_generation, who.id, who.instance_id
    match lie:
        case "generation":
            return Speaker(NO_SUCH_EPOCH, member_id, instance_id)
        case "older generation":
            return Speaker(max(generation - 1, 0), member_id, instance_id)
        case "member":
            return Speaker(generation, "nobody", instance_id)
        case "instance":
            return Speaker(generation, member_id, _instance_of_another(who))
    return Speaker(generation, member_id, instance_id)


def _instance_of_another(who: GroupClient) -> str:
    group = who.world.shard.context.groups.get(who.group)
    if isinstance(group, ClassicGroup | ConsumerGroup):
        for instance_id, member_id in sorted(group.static.items()):
            if member_id != who.id:
                return instance_id
    return "nobody's"


class Producers:
    """What they do to a world is noted in the model of its offsets."""

    def __init__(self, world: GroupWorld, offsets: OffsetModel) -> None:
        self._world = world
        self._offsets = offsets

    def commit(
        self, producer: int, epoch_by: int, speaks: Speaker, commits: Sequence[tuple[Place, Committed]]
    ) -> None:
        """All places are of one group. Those with too much metadata are refused, and no others."""
        world = self._world
        request = _request(producer, self._epoch(producer, epoch_by), speaks, commits)
        allowed = _verdict(world, request)
        batches = len(world.log)
        is_stale = self._is_stale(producer, epoch_by)
        asked = world.ask(
            "commit in a transaction",
            lambda to, now: world.shard.commit_in_transaction(request, CALLER, to, now),
        )
        written = [
            Written(place, commit, producer) for place, commit in commits if commit.metadata != TOO_LONG
        ]
        if not isinstance(asked.answer, TxnOffsetCommitResponse):
            # It was about to be written.
            assert allowed == _TAKEN, asked.answer
            assert isinstance(asked.answer, NotTaken if is_stale else Gone)
            return
        codes = [ErrorCode(topic.partitions[0].error_code) for topic in asked.answer.topics]
        if allowed == _TAKEN:
            assert codes == [_code_of(commit) for _, commit in commits]
            assert not (is_stale and written)
        else:
            assert len(set(codes)) == 1, codes
            assert codes[0] in allowed, f"{codes[0].name} for {request}"
            written = []
        assert len(world.log) == batches + bool(written), "a commit is one batch, or nothing is written"
        self._offsets.note(*written)

    def end(self, producer: int, epoch_by: int, *, commits: bool) -> None:
        """Whether it has anything pending or not."""
        world = self._world
        is_stale = self._is_stale(producer, epoch_by)
        marker = EndMarker(producer, self._epoch(producer, epoch_by), commits, 0, 2)
        asked = world.ask("end", lambda to, now: world.shard.end_transaction(marker, to, now))
        if asked.answer is ErrorCode.NONE:
            assert not is_stale
            self._offsets.note(Ended(producer, commits))
        else:
            assert isinstance(asked.answer, NotTaken if is_stale else Gone)

    def _epoch(self, producer: int, by: int) -> int:
        return self._world.producer_epochs.get(producer, _FIRST_EPOCH) + by

    def _is_stale(self, producer: int, epoch_by: int) -> bool:
        return epoch_by < 0 and producer in self._world.producer_epochs


def _request(
    producer: int, epoch: int, speaks: Speaker, commits: Sequence[tuple[Place, Committed]]
) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id=f"t{producer}",
        group_id=commits[0][0].group,
        producer_id=producer,
        producer_epoch=epoch,
        generation_id=speaks.generation,
        member_id=speaks.member_id,
        group_instance_id=speaks.instance_id,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=place.topic,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=place.partition,
                        committed_offset=commit.offset,
                        committed_metadata=commit.sent_metadata,
                    )
                ],
            )
            for place, commit in commits
        ],
    )


def _code_of(commit: Committed) -> ErrorCode:
    return ErrorCode.OFFSET_METADATA_TOO_LARGE if commit.metadata == TOO_LONG else ErrorCode.NONE


def _verdict(world: GroupWorld, request: TxnOffsetCommitRequest) -> frozenset[ErrorCode]:
    """What the group may say to it as a whole."""
    group = world.shard.context.groups.get(request.group_id)
    generation = request.generation_id
    if generation < 0 and (group is None or group.is_empty or not _names_anybody(request)):
        return _TAKEN
    if group is None:
        return _ILLEGAL
    if isinstance(group, ClassicGroup):
        member = group.members.get(request.member_id)
        if member is None or request.group_instance_id not in (None, member.instance_id):
            return _NOT_A_MEMBER
        return _TAKEN if generation == group.generation else _ILLEGAL
    assert isinstance(group, ConsumerGroup)
    known = group.members.get(request.member_id)
    if known is None:
        return frozenset({ErrorCode.UNKNOWN_MEMBER_ID})
    is_good = generation == known.epoch or (
        generation < known.epoch and _has_had_all(world, known, generation, request)
    )
    return _TAKEN if is_good else _ILLEGAL


def _names_anybody(request: TxnOffsetCommitRequest) -> bool:
    return request.member_id != "" or request.group_instance_id is not None


def _has_had_all(
    world: GroupWorld, member: ConsumerMember, epoch: int, request: TxnOffsetCommitRequest
) -> bool:
    """What a member was given in this epoch or before, and still has, it may commit with it."""
    for topic in request.topics:
        known = world.image.topics.get(topic.name)
        if known is None:
            return False
        since = [_since(part.get(known.id, {}), topic) for part in (member.assigned, member.revoking)]
        is_sent = topic.partitions[0].committed_metadata != TOO_LONG * 2_000
        if is_sent and not any(one is not None and one <= epoch for one in since):
            return False
    return True


def _since(given: Mapping[int, int], topic: TxnOffsetCommitRequestTopic) -> int | None:
    return given.get(topic.partitions[0].partition_index)
