"""State shared by the parts of a consumer: positions, buffered data, and the broker of each partition."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.client.cluster import Cluster
from barnabas.client.consumer.errors import TopicRecreated
from barnabas.client.consumer.fetch_buffer import FetchBuffer
from barnabas.client.consumer.message import EndOfPartition, Message
from barnabas.client.consumer.positions import UNKNOWN, PartitionState, PositionCheck, Positions
from barnabas.client.consumer.rebalance_barrier import ReaderState, RebalanceBarrier
from barnabas.client.consumer.settings import ConsumerSettings
from barnabas.client.deadline import Backoff, Deadline
from barnabas.client.errors import ClientError, RequestTimedOut, UnknownTopic
from barnabas.client.metadata import TopicMetadata

logger = logging.getLogger(__name__)

# Limit of pending errors of brokers, rather than of partitions.
PENDING_ERRORS_MAX: Final = 16
# All waits here are much longer than this.
TIMER_SLACK_S: Final = 0.001


class FetcherLike(Protocol):
    """The fetcher methods used by other modules."""

    def wake(self) -> None: ...

    async def end_session(self) -> None: ...


class Core:
    """Create it in a running loop."""

    def __init__(self, settings: ConsumerSettings, cluster: Cluster) -> None:
        self.settings = settings
        self.cluster = cluster
        self.positions = Positions()
        self.buffer = FetchBuffer(
            check_crcs=settings.check_crcs,
            reports_ends=settings.enable_partition_eof,
            on_space=self._wake_fetcher,
        )
        self.fetchers: dict[int, FetcherLike] = {}
        # Wake the readers, and the PositionUpdater.
        self.reader_wakeup = asyncio.Event()
        self.update_wakeup = asyncio.Event()
        # Set when a position becomes known.
        self.position_found = asyncio.Event()
        self.pending_errors: deque[ClientError] = deque(maxlen=PENDING_ERRORS_MAX)
        # A fatal error of the group: reading raises it.
        self.failure: ClientError | None = None
        self.barrier = RebalanceBarrier(self.reader_wakeup.set)
        # With a subscription, the group handles deleted topics.
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
        """Return the time up to which work is due now. A timer may fire slightly early."""
        return self._loop.time() + TIMER_SLACK_S

    # Waking

    def _wake_fetcher(self, node: int) -> None:
        fetcher = self.fetchers.get(node)
        if fetcher is not None:
            fetcher.wake()

    def wake_readers(self) -> None:
        """Wake all readers, because nothing more is fetched."""
        for reader in self.barrier.readers:
            reader.must_poll = True
        self.reader_wakeup.set()
        self.position_found.set()

    async def wait_for_positions(self, deadline: Deadline, tp: TopicPartition) -> None:
        """Wait until a position becomes known; RequestTimedOut for `tp` at the deadline."""
        self.position_found.clear()
        try:
            async with asyncio.timeout_at(deadline.at):
                await self.position_found.wait()
        except TimeoutError:
            late = RequestTimedOut(f"position of {tp}", "the cluster", deadline.timeout_ms)
            raise late from self.cluster.last_failure

    def wake_all(self) -> None:
        """Positions, pauses or leaders changed: wake everything."""
        self.update_wakeup.set()
        self.reader_wakeup.set()
        self.position_found.set()
        for fetcher in self.fetchers.values():
            fetcher.wake()

    # Partitions

    def is_current(self, one: PartitionState, generation: int) -> bool:
        """Whether work started for this generation is still valid."""
        return one.generation == generation and self.positions.find(one.tp) is one

    def route(self, one: PartitionState) -> int | None:
        """Return the broker to fetch from; None if it has to be looked up first."""
        led = self.cluster.known_leader(one.tp)
        if led is None:
            self.update_wakeup.set()
            return None
        self.check_topic_id(one)
        leader, epoch = led
        if epoch != one.leader_epoch:
            self._on_new_leader_epoch(one, epoch)
        if one.preferred is not None and not self._is_readable(one, one.preferred):
            one.preferred = None
        return leader if one.preferred is None else one.preferred

    def check_topic_id(self, one: PartitionState) -> None:
        """Detect a recreated topic, whose offsets are unrelated to the old ones."""
        topic = self.cluster.metadata.topics.get(one.tp.topic)
        if topic is None or topic.topic_id == one.topic_id or one.error is not None:
            return
        if one.topic_id == ZERO_UUID:
            # The group assigned the partition before its metadata was known.
            one.topic_id = topic.topic_id
        elif self.is_subscribed:
            # A subscription is by name, so continue with the new topic.
            logger.info("topic was recreated tp=%s", one.tp)
            one.topic_id = topic.topic_id
            self.buffer.drop(one)
            one.reset(self.settings.reset_to(self.cluster.ports.clock.now_ms()))
        else:
            self.stop(one, TopicRecreated(one.tp, one.topic_id, topic.topic_id))

    def _is_readable(self, one: PartitionState, replica: int) -> bool:
        """Whether the preferred read replica is still valid: online, and recently named by the leader."""
        metadata = self.cluster.metadata
        topic = metadata.topics.get(one.tp.topic)
        return (
            self.cluster.ports.clock.monotonic_ms() < one.preferred_until_ms
            and replica in metadata.nodes
            and topic is not None
            and replica not in topic.partitions[one.tp.partition].offline
        )

    def _on_new_leader_epoch(self, one: PartitionState, epoch: int) -> None:
        """Handle a new leader epoch: the new leader's log may lack records that were read. (KIP-320)"""
        position, read_epoch = self.buffer.position_of(one)
        if (
            position is not None
            and one.leader_epoch != UNKNOWN
            and read_epoch != UNKNOWN
            and epoch != UNKNOWN
        ):
            # Buffered data may be truncated, too: fetch it again once the position is validated.
            self.buffer.drop(one)
            one.move_to(position, read_epoch)
            one.pending_check = PositionCheck.LEADER
            self.update_wakeup.set()
        one.leader_epoch = epoch

    def replace(self, ids: dict[TopicPartition, Uuid]) -> list[PartitionState]:
        """Assign exactly these partitions. Return the new ones, which have no position yet."""
        before = set(self.positions)
        for gone in self.positions.replace(ids, None):
            self.buffer.drop(gone)
        self.buffer.distribute(self.positions)
        return [one for one in self.positions if one not in before]

    def reset_positions(self, ones: Iterable[PartitionState]) -> None:
        """Apply auto.offset.reset to partitions without a position."""
        reset_to = self.settings.reset_to(self.cluster.ports.clock.now_ms())
        for one in ones:
            one.reset(reset_to)

    def retry_stopped(self, one: PartitionState) -> None:
        """Continue a partition that an error stopped, at its position."""
        position, epoch = self.buffer.position_of(one)
        self.buffer.drop(one)
        if position is None:
            self.reset_positions([one])
        else:
            one.move_to(position, epoch)

    # Delivered messages

    def delivered(self, reader: ReaderState | None = None) -> dict[TopicPartition, tuple[int, int]]:
        """Return next offset and last leader epoch per partition, as delivered to this or any reader."""
        found: dict[TopicPartition, tuple[int, int]] = {}
        for one in self.positions:
            if reader is None or self.buffer.is_read_from(one, reader.buffer):
                offset, epoch = self.buffer.position_of(one)
                if offset is not None:
                    found[one.tp] = (offset, epoch)
        return found

    def finished(self) -> dict[TopicPartition, tuple[int, int]]:
        """Like delivered(), but without messages that a reader may still be processing."""
        found = self.delivered()
        for reader in self.barrier.readers:
            for message in reader.unprocessed():
                at = found.get(message.tp)
                if at is not None and message.offset < at[0]:
                    found[message.tp] = (message.offset, UNKNOWN)
        return found

    def first_unread(self, reader: ReaderState) -> list[Message]:
        """Return this reader's positions as EndOfPartition placeholders, for delivery of a table."""
        here = self.delivered(reader)
        return [EndOfPartition(tp.topic, tp.partition, offset) for tp, (offset, _) in here.items()]

    def retry_later(self, one: PartitionState, why: object) -> None:
        """Note a retriable failure of a partition and back off."""
        one.failures += 1
        wait_ms = self.backoff.wait_ms(one.failures)
        one.retry_at_s = self.now_s() + wait_ms / 1000
        if one.failures == 1:
            logger.info("partition cannot be read, will retry tp=%s reason=%s", one.tp, why)
        self.update_wakeup.set()

    def forget_leader(self, one: PartitionState, why: object) -> None:
        """Like failed(), and the known leader may be wrong."""
        one.preferred = None
        self.cluster.forget_leader(one.tp, one.leader_epoch)
        self.retry_later(one, why)

    def stop(self, one: PartitionState, error: ClientError) -> None:
        logger.info("partition stopped tp=%s error=%s", one.tp, error)
        self.buffer.stop(one, error)
        if self.is_subscribed and isinstance(error, UnknownTopic):
            # The group revokes it later; a deleted topic of a subscription is no error for the reader.
            one.error_raised = True
        self.reader_wakeup.set()
        self.position_found.set()

    def reset_out_of_range(self, one: PartitionState) -> None:
        """Handle an offset out of range: apply auto.offset.reset, or look up the range for the error."""
        reset_to = self.settings.reset_to(self.cluster.ports.clock.now_ms())
        if reset_to is None:
            one.pending_check = PositionCheck.RANGE
        else:
            logger.info("position reset tp=%s offset=%s reset_to=%s", one.tp, one.position, reset_to)
            self.buffer.drop(one)
            one.reset(reset_to)
        self.update_wakeup.set()

    def report_error(self, error: ClientError) -> None:
        """Report a fatal broker error to the reader."""
        if str(error) not in map(str, self.pending_errors):
            self.pending_errors.append(error)
            self.reader_wakeup.set()


def topic_ids_of(
    tps: Iterable[TopicPartition], topics: Mapping[str, TopicMetadata], *, expected: Mapping[str, Uuid]
) -> dict[TopicPartition, Uuid]:
    """Return the topic id of each partition; UnknownTopic, or TopicRecreated if another one is expected."""
    ids: dict[TopicPartition, Uuid] = {}
    for tp in tps:
        if tp.partition not in range(len(topics[tp.topic].partitions)):
            raise UnknownTopic(about=f"partition {tp}")
        ids[tp] = topics[tp.topic].topic_id
        meant = expected.get(tp.topic, ids[tp])
        # Brokers before Kafka 2.8 have no topic ids.
        if meant != ids[tp] and ids[tp] != ZERO_UUID:
            raise TopicRecreated(tp, meant, ids[tp])
    return ids
