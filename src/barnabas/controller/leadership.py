"""Eligible leaders, and the changes of partitions when brokers come and go."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from barnabas.base.ids import Uuid
from barnabas.controller.effective import TopicRules, elr_enabled
from barnabas.controller.facts import ControllerSettings
from barnabas.controller.partition_change import Election, PartitionChange
from barnabas.metadata.image import MetadataImage, PartitionImage, TopicImage
from barnabas.metadata.partition import LOST, MIGRATING, UNASSIGNED
from barnabas.protocol.stored.cluster_topics import PartitionChangeRecord


class Placed(NamedTuple):
    """A partition: its topic and number."""

    topic: TopicImage
    number: int

    @property
    def partition(self) -> PartitionImage:
        return self.topic.partitions[self.number]


def is_active(image: MetadataImage, broker_id: int) -> bool:
    """Whether the broker is registered, unfenced, and not in controlled shutdown."""
    broker = image.brokers.get(broker_id)
    return broker is not None and not broker.fenced and not broker.in_controlled_shutdown


def default_directory(image: MetadataImage, broker_id: int) -> Uuid:
    """The directory of a new replica: that of a broker with only one, otherwise a reserved id."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        return UNASSIGNED
    directories = broker.registration.log_dirs
    if not directories:
        return MIGRATING
    return directories[0] if len(directories) == 1 else UNASSIGNED


def has_online_directory(image: MetadataImage, broker_id: int, directory: Uuid) -> bool:
    broker = image.brokers.get(broker_id)
    if broker is None or directory == LOST:
        return False
    if directory in (UNASSIGNED, MIGRATING):
        return True
    # A broker without directories was registered before directories had ids.
    return not broker.registration.log_dirs or directory in broker.registration.log_dirs


def partitions(image: MetadataImage) -> Iterator[Placed]:
    for topic in image.topics.values():
        for number in range(len(topic.partitions)):
            yield Placed(topic, number)


def in_sync_on(image: MetadataImage, broker_id: int) -> list[Placed]:
    return [one for one in partitions(image) if broker_id in one.partition.isr]


def eligible_on(image: MetadataImage, broker_id: int) -> list[Placed]:
    return [one for one in partitions(image) if broker_id in one.partition.elr]


def leaderless(image: MetadataImage) -> list[Placed]:
    return [one for one in partitions(image) if one.partition.leader < 0]


def leads_any(image: MetadataImage, broker_id: int) -> bool:
    return any(one.partition.leader == broker_id for one in partitions(image))


def change_of(
    image: MetadataImage,
    rules: TopicRules,
    placed: Placed,
    is_up: Callable[[int], bool] | None = None,
) -> PartitionChange:
    """An empty change of this partition. `is_up` tells which brokers are alive (default: by the image)."""
    partition = placed.partition
    alive = is_up or (lambda broker: is_active(image, broker))

    def may_lead(broker: int) -> bool:
        if broker not in partition.replicas or not alive(broker):
            return False
        directory = partition.directories[partition.replicas.index(broker)]
        return has_online_directory(image, broker, directory)

    return PartitionChange(
        partition=partition,
        topic_id=placed.topic.id,
        index=placed.number,
        may_lead=may_lead,
        min_isr=rules.min_isr(placed.topic),
        elr_enabled=elr_enabled(image),
        default_directory=lambda broker: default_directory(image, broker),
    )


def updates(
    image: MetadataImage,
    settings: ControllerSettings,
    affected: Iterable[Placed],
    *,
    removed: int | None = None,
    added: int | None = None,
    unclean: int | None = None,
) -> list[PartitionChangeRecord]:
    """The changes of partitions when a broker leaves, comes, or restarts after an unclean shutdown.

    The image is that of before: the leaving broker is still alive in it, and the coming one fenced.
    """
    gone = {broker for broker in (removed, unclean) if broker is not None}

    def is_up(broker: int) -> bool:
        return broker not in gone and (broker == added or is_active(image, broker))

    rules = TopicRules(image, settings)
    records = []
    for placed in affected:
        change = change_of(image, rules, placed, is_up)
        change.isr = [one for one in placed.partition.isr if one not in gone]
        if unclean is not None:
            change.unclean_replicas = frozenset({unclean})
        if rules.allows_unclean(placed.topic.name):
            change.election = Election.UNCLEAN
        record = change.record()
        if record is not None:
            records.append(record)
    return records
