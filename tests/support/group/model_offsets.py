"""Committed offsets as the list of what was written: a shard has what the list says, read from its start.

Only what is old enough may be gone without having been asked for.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.base.ids import Uuid
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from support.group.model import Gone, GroupWorld
from support.group.model_clients import GroupClient

# Stands for metadata that no commit may have.
TOO_LONG = "..."
_NO_RETENTION = -1

# What a reader is told of a partition: offset, metadata and code.
Seen = tuple[int, str, ErrorCode]
NOTHING: Seen = (-1, "", ErrorCode.NONE)
UNSTABLE: Seen = (-1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)


class Place(NamedTuple):
    """A partition as a group knows it."""

    group: str
    topic: str
    partition: int


class Committed(NamedTuple):
    """A commit of one partition. `retention_ms` is what old clients say of themselves."""

    offset: int
    metadata: str
    now_ms: int
    retention_ms: int = _NO_RETENTION

    @property
    def sent_metadata(self) -> str:
        return self.metadata * 2_000 if self.metadata == TOO_LONG else self.metadata

    def request(
        self, group: str, who: GroupClient | None, topic: str, topic_id: Uuid, partition: int
    ) -> OffsetCommitRequest:
        one = OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=self.offset,
            committed_metadata=self.sent_metadata,
        )
        return OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1 if who is None else who.epoch_or_generation,
            member_id="" if who is None else who.id,
            group_instance_id=None if who is None else who.instance_id,
            retention_time_ms=self.retention_ms,
            topics=[OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[one])],
        )


def commit_code(answer: object) -> ErrorCode:
    if isinstance(answer, OffsetCommitResponse):
        return ErrorCode(answer.topics[0].partitions[0].error_code)
    assert isinstance(answer, Gone)
    return ErrorCode(answer.error_code)


class Written(NamedTuple):
    """A commit, plain or in a producer's transaction."""

    place: Place
    commit: Committed
    producer: int | None = None


class Removed(NamedTuple):
    """The offset is taken away, with whatever is pending for it."""

    place: Place


class Ended(NamedTuple):
    """A producer's transaction is over."""

    producer: int
    commits: bool


class OffsetModel:
    """What was written, in the order of the log."""

    def __init__(self) -> None:
        self.history: list[Written | Removed | Ended] = []
        # When a group was last seen with members.
        self._inhabited_ms: dict[str, int] = {}

    def note(self, *entries: Written | Removed | Ended) -> None:
        self.history += entries

    def forget(self, group: str, topics: Iterable[str] | None = None) -> None:
        self._forget(place for place in self._places() if place.group == group and _is_in(place, topics))

    def forget_topics(self, names: Iterable[str]) -> None:
        gone = set(names)
        self._forget(place for place in self._places() if place.topic in gone)

    def read(self) -> tuple[dict[Place, Committed], set[Place]]:
        """What is committed, and for which places something is pending.

        Of a place that is committed which was written last and counts, whenever it came to count.
        """
        committed: dict[Place, Committed] = {}
        unstable: set[Place] = set()
        for number, entry in enumerate(self.history):
            if isinstance(entry, Removed):
                committed.pop(entry.place, None)
                unstable.discard(entry.place)
            elif isinstance(entry, Written):
                counts = self._counts(number, entry)
                if counts is None:
                    unstable.add(entry.place)
                elif counts:
                    committed[entry.place] = entry.commit
        return committed, unstable

    def see_members(self, world: GroupWorld) -> None:
        """To be called after every write."""
        for group in world.shard.context.groups.values():
            if not group.is_empty:
                self._inhabited_ms[group.id] = world.now.ms

    def pending_groups(self) -> set[str]:
        return {place.group for place in self.read()[1]}

    def check(self, world: GroupWorld, groups: Sequence[str]) -> None:
        """The shard has these, but for what is old enough to be gone."""
        committed, unstable = self.read()
        found = _read_all(world, groups, require_stable=False)
        for place in [place for place in committed if place not in found]:
            gone = committed.pop(place)
            assert place not in unstable, f"{place} is lost, for which something is pending: {gone}"
            assert world.now.ms >= self._expires_ms(world, place, gone), f"{place} is lost: {gone}"
            self.note(Removed(place))
        read = {place: (one.offset, one.metadata, ErrorCode.NONE) for place, one in committed.items()}
        assert found == read
        read |= dict.fromkeys(unstable, UNSTABLE)
        assert _read_all(world, groups, require_stable=True) == {place: read[place] for place in committed}
        # Whoever names partitions is told of those that have nothing, too.
        for place, one in _read_by_name(world, groups, self._places(), require_stable=True).items():
            assert one == read.get(place, NOTHING), f"{place}: {one}"
        for place, one in _read_by_name(world, groups, unstable, require_stable=False).items():
            assert one == found.get(place, NOTHING), f"{place}: {one}"

    def _expires_ms(self, world: GroupWorld, place: Place, commit: Committed) -> int:
        """The first time at which it may be gone.

        As in Kafka, in a classic group that has lost its members all offsets are as old as that: those that
        were committed afterwards expire with the others.
        """
        if commit.retention_ms != _NO_RETENTION:
            return commit.now_ms + commit.retention_ms
        since_ms = min(commit.now_ms, self._inhabited_ms.get(place.group, commit.now_ms))
        return since_ms + world.settings.offsets_retention_ms

    def _counts(self, number: int, written: Written) -> bool | None:
        """Whether the transaction of this entry was committed; None if it has not ended."""
        if written.producer is None:
            return True
        for later in self.history[number:]:
            if isinstance(later, Ended) and later.producer == written.producer:
                return later.commits
        return None

    def _places(self) -> set[Place]:
        return {entry.place for entry in self.history if isinstance(entry, Written)}

    def _forget(self, places: Iterable[Place]) -> None:
        self.note(*map(Removed, sorted(places)))


def _is_in(place: Place, topics: Iterable[str] | None) -> bool:
    return topics is None or place.topic in topics


def _read_all(world: GroupWorld, groups: Iterable[str], *, require_stable: bool) -> dict[Place, Seen]:
    return {
        place: seen
        for group in groups
        for place, seen in _fetch(world, group, None, require_stable=require_stable).items()
    }


def _read_by_name(
    world: GroupWorld, groups: Iterable[str], places: Iterable[Place], *, require_stable: bool
) -> dict[Place, Seen]:
    return {
        place: seen
        for group in groups
        for place, seen in _fetch(
            world,
            group,
            [
                OffsetFetchRequestTopics(name=place.topic, partition_indexes=[place.partition])
                for place in places
                if place.group == group
            ],
            require_stable=require_stable,
        ).items()
    }


def _fetch(
    world: GroupWorld, group: str, topics: list[OffsetFetchRequestTopics] | None, *, require_stable: bool
) -> dict[Place, Seen]:
    asked = OffsetFetchRequestGroup(group_id=group, topics=topics)
    answer = world.shard.fetch(asked, require_stable=require_stable)
    assert answer.error_code == 0, answer
    return {
        Place(group, topic.name, one.partition_index): (
            one.committed_offset,
            one.metadata or "",
            ErrorCode(one.error_code),
        )
        for topic in answer.topics
        for one in topic.partitions
    }
