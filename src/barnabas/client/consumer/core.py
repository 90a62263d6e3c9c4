"""What the parts of a consumer share: positions, what has arrived, where partitions are fetched."""

import asyncio
import logging
from collections import deque
from typing import Final, Protocol

from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.client.cluster import Cluster
from barnabas.client.consumer.delivery import Delivery
from barnabas.client.consumer.errors import TopicRecreated
from barnabas.client.consumer.gate import Gate, Visitor
from barnabas.client.consumer.message import EndOfPartition, Message
from barnabas.client.consumer.positions import UNKNOWN, Assigned, Doubt, Positions
from barnabas.client.consumer.settings import ConsumerSettings
from barnabas.client.deadline import Backoff
from barnabas.client.errors import ClientError, UnknownTopic

logger = logging.getLogger(__name__)

# Errors of brokers, rather than of partitions, that the reader has not seen yet.
COMPLAINTS_MAX: Final = 16
# No wait here is so short that this matters.
TIMER_SLACK_S: Final = 0.001


class FetcherLike(Protocol):
    """What others ask of a fetcher."""

    def poke(self) -> None: ...

    async def end_session(self) -> None: ...


class Core:
    """Made in a running loop."""

    def __init__(self, settings: ConsumerSettings, cluster: Cluster) -> None:
        self.settings = settings
        self.cluster = cluster
        self.positions = Positions()
        self.delivery = Delivery(
            check_crcs=settings.check_crcs,
            tells_ends=settings.enable_partition_eof,
            on_room=self._room_at,
        )
        self.fetchers: dict[int, FetcherLike] = {}
        # Set when the reader should look again, and when upkeep should.
        self.news = asyncio.Event()
        self.chores = asyncio.Event()
        # Set when a position has become known.
        self.found = asyncio.Event()
        self.complaints: deque[ClientError] = deque(maxlen=COMPLAINTS_MAX)
        # Why nothing can be read for good: the group does not take this member.
        self.failure: ClientError | None = None
        self.gate = Gate(self.news.set)
        # Whether a group says what is read: then a topic that goes away is the group's business.
        self.is_subscribed = False
        self.backoff = Backoff(
            first_ms=max(1, settings.retry_backoff_ms),
            max_ms=settings.retry_backoff_max_ms,
            rng=cluster.ports.rng,
        )
        self._loop = asyncio.get_running_loop()

    def now_s(self) -> float:
        return self._loop.time()

    def due_s(self) -> float:
        """What is to be done by this time is due now. A timer may fire a moment before its time."""
        return self._loop.time() + TIMER_SLACK_S

    # Waking

    def _room_at(self, node: int) -> None:
        fetcher = self.fetchers.get(node)
        if fetcher is not None:
            fetcher.poke()

    def changed(self) -> None:
        """Positions, pauses or leaders are not what they were: everybody looks again."""
        self.chores.set()
        self.news.set()
        self.found.set()
        for fetcher in self.fetchers.values():
            fetcher.poke()

    # Partitions

    def is_current(self, one: Assigned, generation: int) -> bool:
        """Whether what was begun for this generation still counts."""
        return one.generation == generation and self.positions.find(one.tp) is one

    def route(self, one: Assigned) -> int | None:
        """The broker to fetch from; None if that has to be found out first."""
        led = self.cluster.known_leader(one.tp)
        if led is None:
            self.chores.set()
            return None
        self.check_identity(one)
        leader, epoch = led
        if epoch != one.leader_epoch:
            self._meet_leader(one, epoch)
        if one.preferred is not None and not self._may_read(one, one.preferred):
            one.preferred = None
        return leader if one.preferred is None else one.preferred

    def check_identity(self, one: Assigned) -> None:
        """A topic of that name may be another one by now, whose offsets mean something else."""
        topic = self.cluster.metadata.topics.get(one.tp.topic)
        if topic is None or topic.topic_id == one.topic_id or one.error is not None:
            return
        if one.topic_id == ZERO_UUID:
            # The group gave it to us before the metadata told of it.
            one.topic_id = topic.topic_id
        elif self.is_subscribed:
            # Whoever subscribes wants the topic of that name, whichever it is.
            logger.info("topic was recreated tp=%s", one.tp)
            one.topic_id = topic.topic_id
            self.delivery.drop(one)
            one.move_by(self.settings.reset_to(self.cluster.ports.clock.now_ms()))
        else:
            self.stop(one, TopicRecreated(one.tp, one.topic_id, topic.topic_id))

    def _may_read(self, one: Assigned, replica: int) -> bool:
        """Whether a replica is still the one to read from: it is there, and the leader named it lately."""
        metadata = self.cluster.metadata
        topic = metadata.topics.get(one.tp.topic)
        return (
            self.cluster.ports.clock.monotonic_ms() < one.preferred_until_ms
            and replica in metadata.nodes
            and topic is not None
            and replica not in topic.partitions[one.tp.partition].offline
        )

    def _meet_leader(self, one: Assigned, epoch: int) -> None:
        """Another epoch than before: what was read may be gone from the new leader's log. (KIP-320)"""
        position, read_epoch = self.delivery.position_of(one)
        if (
            position is not None
            and one.leader_epoch != UNKNOWN
            and read_epoch != UNKNOWN
            and epoch != UNKNOWN
        ):
            # What lies here unread may be gone too; it is fetched again once the position is sure.
            self.delivery.drop(one)
            one.move_to(position, read_epoch)
            one.doubt = Doubt.LEADER
            self.chores.set()
        one.leader_epoch = epoch

    def replace(self, ids: dict[TopicPartition, Uuid]) -> list[Assigned]:
        """Assign these partitions and no others; those that are new, which do not know where to begin."""
        before = set(self.positions)
        for gone in self.positions.replace(ids, None):
            self.delivery.drop(gone)
        self.delivery.settle_in(self.positions)
        return [one for one in self.positions if one not in before]

    # What was handed out

    def delivered(self, visitor: Visitor | None = None) -> dict[TopicPartition, tuple[int, int]]:
        """Next offset and epoch of the last record, of what this reader or any was handed."""
        found: dict[TopicPartition, tuple[int, int]] = {}
        for one in self.positions:
            if visitor is None or self.delivery.is_at(one, visitor.delivery):
                offset, epoch = self.delivery.position_of(one)
                if offset is not None:
                    found[one.tp] = (offset, epoch)
        return found

    def finished(self) -> dict[TopicPartition, tuple[int, int]]:
        """The same without what a reader may still be working on."""
        found = self.delivered()
        for visitor in self.gate.visitors:
            for message in visitor.unfinished():
                at = found.get(message.tp)
                if at is not None and message.offset < at[0]:
                    found[message.tp] = (message.offset, UNKNOWN)
        return found

    def first_unread(self, visitor: Visitor) -> list[Message]:
        """Where this reader stands, as messages that are not there: for what is handed out as a table."""
        here = self.delivered(visitor)
        return [EndOfPartition(tp.topic, tp.partition, offset) for tp, (offset, _) in here.items()]

    def failed(self, one: Assigned, why: object) -> None:
        """Something about it went wrong and may go well later."""
        one.failures += 1
        wait_ms = self.backoff.wait_ms(one.failures)
        one.not_before_s = self.now_s() + wait_ms / 1000
        if one.failures == 1:
            logger.info("partition cannot be read, will retry tp=%s reason=%s", one.tp, why)
        self.chores.set()

    def forget_leader(self, one: Assigned, why: object) -> None:
        """The same, and whoever is believed to lead it may not."""
        one.preferred = None
        self.cluster.forget_leader(one.tp, one.leader_epoch)
        self.failed(one, why)

    def stop(self, one: Assigned, error: ClientError) -> None:
        logger.info("partition stopped tp=%s error=%s", one.tp, error)
        self.delivery.stop(one, error)
        if self.is_subscribed and isinstance(error, UnknownTopic):
            # The group will take it away; nobody asked for this topic but by a subscription.
            one.error_told = True
        self.news.set()
        self.found.set()

    def reset(self, one: Assigned) -> None:
        """Its offset is not there: go on by auto.offset.reset, or find out what to tell the reader."""
        reset_to = self.settings.reset_to(self.cluster.ports.clock.now_ms())
        if reset_to is None:
            one.doubt = Doubt.RANGE
        else:
            logger.info("position reset tp=%s offset=%s reset_to=%s", one.tp, one.position, reset_to)
            self.delivery.drop(one)
            one.move_by(reset_to)
        self.chores.set()

    def complain(self, error: ClientError) -> None:
        """An error of a broker that does not pass by itself: the reader has to know."""
        if str(error) not in map(str, self.complaints):
            self.complaints.append(error)
            self.news.set()
