"""The topics of Metadata responses, cached between requests.

Clients ask for metadata often, and for all topics at once. The row of a topic is built when it is first
requested, and again when the topic has changed. An image shares unchanged objects with the one before, so an
identity check finds changes. Responses share rows, so nobody may modify them. With 2,000 partitions the cache
cuts the time for all topics from 5 ms to 0.02 ms.
"""

from collections.abc import Generator
from enum import Enum
from typing import Final

from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionImage, TopicImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import MetadataResponsePartition, MetadataResponseTopic
from barnabas.server.cluster.brokers import ReachableBrokers
from barnabas.server.requests.slices import AT_ONCE

# Rows of deleted topics remain until there are more rows than twice the number of topics plus this.
STALE_ROWS_MAX: Final = 1_000
# Maximum number of interned replica lists.
LISTS_MAX: Final = 10_000

INTERNAL_TOPICS: Final = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))


class Style(Enum):
    """How a version of Metadata reports replicas that the client cannot reach."""

    # Version 0 leaves them out and sets an error.
    LEFT_OUT = 0
    # Up to version 5, a leader without the client's listener is LEADER_NOT_AVAILABLE.
    NOT_AVAILABLE = 1
    # Since version 6 it is LISTENER_NOT_FOUND.
    LISTENER_NOT_FOUND = 6

    @classmethod
    def of(cls, version: int) -> "Style":
        if version >= cls.LISTENER_NOT_FOUND.value:
            return cls.LISTENER_NOT_FOUND
        return cls.LEFT_OUT if version == 0 else cls.NOT_AVAILABLE


class TopicRows:
    """One broker's cache: a view for every listener and style that was requested."""

    def __init__(self) -> None:
        # Bounded by the listeners of the broker, times three.
        self._views: dict[tuple[str, Style], View] = {}

    def view(self, image: MetadataImage, listener: str, version: int) -> "View":
        """The rows of an image, valid until a view of another image is requested."""
        style = Style.of(version)
        view = self._views.get((listener, style))
        if view is None:
            view = self._views[listener, style] = View(listener, style)
        view.follow(image)
        return view


class View:
    """The topics of one image as the clients of one listener see them."""

    __slots__ = ("_all", "_listener", "_lists", "_reachable", "_rows", "_style", "image")

    def __init__(self, listener: str, style: Style) -> None:
        self._listener: Final = listener
        self._style: Final = style
        self.image = EMPTY_IMAGE
        self._reachable = ReachableBrokers(EMPTY_IMAGE, listener)
        self._rows: dict[str, tuple[TopicImage, MetadataResponseTopic]] = {}
        self._all: list[MetadataResponseTopic] | None = None
        # Intern replica lists: most partitions share one of a few.
        self._lists: dict[tuple[int, ...], list[int]] = {}

    def follow(self, image: MetadataImage) -> None:
        if image is self.image:
            return
        if image.topics is not self.image.topics or image.brokers is not self._reachable.brokers:
            self._all = None
        if image.brokers is not self._reachable.brokers:
            self._reachable = ReachableBrokers(image, self._listener)
            self._forget()
        elif len(self._rows) > 2 * len(image.topics) + STALE_ROWS_MAX:
            self._forget()
        self.image = image

    def _forget(self) -> None:
        self._rows = {}
        self._lists = {}

    def all(self) -> list[MetadataResponseTopic]:
        """The rows of all topics."""
        if self._all is None:
            self._all = [self.row(topic) for topic in self.image.topics.values()]
        return self._all

    @property
    def missing(self) -> int:
        """About how many rows all() would have to build."""
        return 0 if self._all is not None else len(self.image.topics) - len(self._rows)

    def fill(self) -> Generator[None, None, None]:
        """Build the rows of all topics, in steps of a few milliseconds."""
        partitions = 0
        for topic in list(self.image.topics.values()):
            self.row(topic)
            partitions += len(topic.partitions)
            if partitions > AT_ONCE:
                partitions = 0
                yield

    def row(self, topic: TopicImage) -> MetadataResponseTopic:
        cached = self._rows.get(topic.name)
        if cached is not None and cached[0] is topic:
            return cached[1]
        row = MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=[self._partition(index, one) for index, one in enumerate(topic.partitions)],
        )
        self._rows[topic.name] = topic, row
        return row

    def _partition(self, index: int, partition: PartitionImage) -> MetadataResponsePartition:
        leader = self._reachable.leader(partition)
        replicas, isr = partition.replicas, partition.isr
        if self._style is Style.LEFT_OUT:
            alive = self._reachable.alive
            replicas = tuple(one for one in replicas if one in alive)
            isr = tuple(one for one in isr if one in alive)
        if leader is None:
            error = self._without_leader(partition)
        elif len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
            error = ErrorCode.REPLICA_NOT_AVAILABLE
        else:
            error = ErrorCode.NONE
        return MetadataResponsePartition(
            error_code=error,
            partition_index=index,
            leader_id=-1 if leader is None else leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=self._list(replicas),
            isr_nodes=self._list(isr),
            offline_replicas=self._list(tuple(self._reachable.offline(partition))),
        )

    def _without_leader(self, partition: PartitionImage) -> ErrorCode:
        if self._style is Style.LISTENER_NOT_FOUND and partition.leader in self._reachable.brokers:
            return ErrorCode.LISTENER_NOT_FOUND
        return ErrorCode.LEADER_NOT_AVAILABLE

    def _list(self, values: tuple[int, ...]) -> list[int]:
        cached = self._lists.get(values)
        if cached is None:
            if len(self._lists) >= LISTS_MAX:
                self._lists = {}
            cached = self._lists[values] = list(values)
        return cached
