"""Changes of topics, as drafts that finish() turns into images.

Part of changes.py, which handles the other records.
"""

from collections.abc import Iterable
from types import MappingProxyType

from barnabas.base.ids import Uuid, format_uuid
from barnabas.metadata.errors import MetadataInconsistent
from barnabas.metadata.image import MetadataImage, PartitionImage, TopicImage, mutable_copy
from barnabas.metadata.partition import altered, partition_of, without_elr
from barnabas.protocol.stored.cluster_nodes import ClearElrRecord
from barnabas.protocol.stored.cluster_topics import (
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)


class TopicDraft:
    """A topic under construction. Partitions are keyed by number, because a snapshot may have any order."""

    __slots__ = ("id", "name", "partitions")

    def __init__(self, name: str, topic_id: Uuid, partitions: Iterable[PartitionImage] = ()) -> None:
        self.name = name
        self.id = topic_id
        self.partitions = dict(enumerate(partitions))

    def finish(self) -> TopicImage:
        count = len(self.partitions)
        try:
            return TopicImage(self.name, self.id, tuple(self.partitions[i] for i in range(count)))
        except KeyError as missing:
            raise MetadataInconsistent(
                TopicRecord(name=self.name, topic_id=self.id),
                f"partition {missing} is missing, found {count} partitions",
            ) from None


class TopicChanges:
    """Drafts by topic id, on top of an image."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._drafts: dict[Uuid, TopicDraft] = {}
        self.deleted: dict[Uuid, TopicImage] = {}
        # Names whose topic differs from the image: the new topic's id, or None if the name is free.
        self._names: dict[str, Uuid | None] = {}

    @property
    def changed(self) -> set[Uuid]:
        """Topics that were created or altered, and not deleted."""
        return set(self._drafts)

    def create(self, record: TopicRecord) -> None:
        taken = self._id_of(record.name)
        if taken is not None:
            raise MetadataInconsistent(record, f"name is in use by topic {format_uuid(taken)}")
        if record.topic_id in self._drafts or record.topic_id in self._image.topics_by_id:
            raise MetadataInconsistent(record, "topic id is in use")
        self._drafts[record.topic_id] = TopicDraft(record.name, record.topic_id)
        self._names[record.name] = record.topic_id

    def create_partition(self, record: PartitionRecord) -> None:
        draft = self._draft(record.topic_id, record)
        draft.partitions[record.partition_id] = partition_of(record)

    def alter_partition(self, record: PartitionChangeRecord) -> None:
        draft = self._draft(record.topic_id, record)
        known = draft.partitions.get(record.partition_id)
        if known is None:
            raise MetadataInconsistent(record, f"topic {draft.name} has no partition {record.partition_id}")
        draft.partitions[record.partition_id] = altered(known, record)

    def remove(self, record: RemoveTopicRecord) -> str:
        """Remove a topic; return its name."""
        draft = self._draft(record.topic_id, record)
        before = self._image.topics_by_id.get(record.topic_id)
        # A topic that was created and deleted within one image was never visible.
        if before is not None:
            self.deleted[record.topic_id] = before
        del self._drafts[record.topic_id]
        self._names[draft.name] = None
        return draft.name

    def clear_elr(self, record: ClearElrRecord) -> None:
        """Clear the ELR of one topic, or of all topics if the record has no name."""
        if record.topic_name:
            topic_id = self._id_of(record.topic_name)
            if topic_id is None:
                raise MetadataInconsistent(record, f"topic {record.topic_name} does not exist")
            self._clear(self._draft(topic_id, record))
            return
        for topic in self._image.topics_by_id.values():
            with_elr = any(one.elr or one.last_known_elr for one in topic.partitions)
            if with_elr and topic.id not in self.deleted:
                self._draft(topic.id, record)
        for draft in self._drafts.values():
            self._clear(draft)

    def finish(self) -> tuple[MappingProxyType[str, TopicImage], MappingProxyType[Uuid, TopicImage]]:
        """Topics by name and by id."""
        by_id = mutable_copy(self._image.topics_by_id)
        by_name = mutable_copy(self._image.topics)
        for topic_id, topic in self.deleted.items():
            del by_id[topic_id], by_name[topic.name]
        for topic_id, draft in self._drafts.items():
            by_id[topic_id] = by_name[draft.name] = draft.finish()
        return MappingProxyType(by_name), MappingProxyType(by_id)

    @property
    def touched(self) -> bool:
        return bool(self._drafts or self.deleted)

    def _clear(self, draft: TopicDraft) -> None:
        for index, partition in draft.partitions.items():
            if partition.elr or partition.last_known_elr:
                draft.partitions[index] = without_elr(partition)

    def _id_of(self, name: str) -> Uuid | None:
        if name in self._names:
            return self._names[name]
        topic = self._image.topics.get(name)
        return None if topic is None else topic.id

    def _draft(self, topic_id: Uuid, record: object) -> TopicDraft:
        draft = self._drafts.get(topic_id)
        if draft is None:
            topic = self._image.topics_by_id.get(topic_id)
            if topic is None or topic_id in self.deleted:
                raise MetadataInconsistent(record, f"topic {format_uuid(topic_id)} does not exist")
            draft = self._drafts[topic_id] = TopicDraft(topic.name, topic_id, topic.partitions)
        return draft
