"""Convert an image to records, in an order that can be replayed: records may refer to earlier ones.

snapshot_schedule.py decides when a snapshot is due; the quorum writes it.
"""

from collections.abc import Iterator

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
        for name, value in values.items():
            yield ConfigRecord(
                resource_type=resource.type, resource_name=resource.name, name=name, value=value
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
