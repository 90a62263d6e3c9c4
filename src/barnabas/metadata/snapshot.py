"""Convert an image to records, in an order that can be replayed, and decide when a snapshot is due (pure).

Records may refer to earlier ones. The quorum writes the snapshot.
"""

from collections.abc import Iterator

from barnabas.base.values import value
from barnabas.metadata.image import METADATA_VERSION, MetadataImage
from barnabas.metadata.partition import record_of
from barnabas.protocol.stored.cluster_nodes import FeatureLevelRecord
from barnabas.protocol.stored.cluster_topics import ConfigRecord, ProducerIdsRecord, TopicRecord


def records_of(image: MetadataImage) -> Iterator[object]:
    """All records of the image."""
    yield from _features(image)
    for broker_id in sorted(image.brokers):
        yield image.brokers[broker_id].registration
    for controller_id in sorted(image.controllers):
        yield image.controllers[controller_id]
    for topic in image.topics.values():
        yield TopicRecord(name=topic.name, topic_id=topic.id)
        for index, partition in enumerate(topic.partitions):
            yield record_of(partition, topic.id, index)
    for resource, values in image.configs.items():
        for name, text in values.items():
            yield ConfigRecord(
                resource_type=resource.type, resource_name=resource.name, name=name, value=text
            )
    if image.next_producer_id:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.access.values()


def _features(image: MetadataImage) -> Iterator[FeatureLevelRecord]:
    # metadata.version comes first, because it determines how to read the other records.
    if METADATA_VERSION in image.features:
        yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=image.features[METADATA_VERSION])
    for name, level in image.features.items():
        if name != METADATA_VERSION:
            yield FeatureLevelRecord(name=name, feature_level=level)


@value(kw_only=True)
class SnapshotSchedule:
    """metadata.log.max.record.bytes.between.snapshots, metadata.log.max.snapshot.interval.ms (0: never).

    A snapshot is due after a number of bytes of records, so that a start has little to replay, and after an
    interval if there are any new records, so that the log can be truncated at its start.
    """

    bytes_max: int
    interval_ms: int

    def is_due(self, *, bytes_since: int, ms_since: int) -> bool:
        """Decide by the bytes and time since the last snapshot, or since the start."""
        if bytes_since <= 0:
            return False
        return bytes_since >= self.bytes_max or 0 < self.interval_ms <= ms_since
