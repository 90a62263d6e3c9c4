"""Routes partition queues to the sender task of their leader, and handles timers, leaders and producer ids.

A queue with a batch to send is *scheduled*: it is in the ready list of its leader's NodeSender, or in that of
the Sender while the leader is unknown. A queue that has to wait (linger, backoff) has a timer. A queue that
waits for a response or for a producer id is scheduled when that arrives.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any

from barnabas.base.ids import TopicPartition
from barnabas.base.tasks import Tasks
from barnabas.client.cluster import Cluster
from barnabas.client.deadline import Backoff, Deadline
from barnabas.client.errors import ClientError, UnknownTopic, is_retriable, refused
from barnabas.client.metadata import Metadata, TopicMetadata
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import Batch
from barnabas.client.producer.delivery import finished
from barnabas.client.producer.identity import IdentityKeeper
from barnabas.client.producer.node_sender import NodeSender, Wakeup
from barnabas.client.producer.outcomes import Outcomes
from barnabas.client.producer.partitioner import chooser_of
from barnabas.client.producer.queues import PartitionQueue, TopicQueues
from barnabas.client.producer.settings import PartitionerFunction, ProducerSettings

if TYPE_CHECKING:
    from barnabas.client.producer.transaction_manager import TransactionManager


class Sender:
    def __init__(
        self,
        cluster: Cluster,
        settings: ProducerSettings,
        partitioner: PartitionerFunction | None,
        *,
        on_crash: Callable[[BaseException], None],
        on_transaction: Callable[[bool], None],
    ) -> None:
        self.cluster = cluster
        self.settings = settings
        self.clock = cluster.ports.clock
        rng = cluster.ports.rng
        choose, key_hash = chooser_of(settings, partitioner, rng)
        self.accumulator = Accumulator(
            settings,
            clock=self.clock,
            rng=rng,
            choose=choose,
            key_hash=key_hash,
            schedule=self.schedule,
            schedule_at=self.schedule_at,
            on_failure=self._batch_failed if settings.is_transactional else None,
        )
        backoff = Backoff(first_ms=settings.retry_backoff_ms, max_ms=settings.retry_backoff_max_ms, rng=rng)
        self.outcomes = Outcomes(
            settings,
            cluster=cluster,
            accumulator=self.accumulator,
            clock=self.clock,
            backoff=backoff,
            schedule=self.schedule,
        )
        self._tasks = Tasks(on_crash)
        self._on_crash = on_crash
        self._backoff = backoff
        self.transactions = self._new_transactions(on_transaction) if settings.is_transactional else None
        self.identity: IdentityKeeper | TransactionManager = self.transactions or IdentityKeeper(
            cluster, self._tasks, backoff, on_new=self._identity_ready, on_error=self._identity_failed
        )
        self._requests_in_flight = 0
        self._all_ended = asyncio.Event()
        self._wakeup = Wakeup()
        self._ready: list[PartitionQueue] = []
        self._leaderless: dict[PartitionQueue, None] = {}
        self._is_finding_leaders = False
        # Topics that try_send() has requested metadata for.
        self._topic_lookups: set[str] = set()
        self._nodes: dict[int, NodeSender] = {}
        # Time, a tie-breaker for equal times, the queue to schedule.
        self._timers: list[tuple[int, int, PartitionQueue]] = []
        self._timer_numbers = count()
        self._applied_metadata: Metadata | None = None

    def _new_transactions(self, on_transaction: Callable[[bool], None]) -> "TransactionManager":
        # Imported late: most producers have no transactions.
        from barnabas.client.producer.transaction_manager import TransactionManager

        return TransactionManager(self.cluster, self.settings, self, on_transaction)

    def start(self) -> None:
        self._tasks.start(self._run_timers())
        self._tasks.start(self._keep_topics_in_use())

    async def close(self) -> None:
        """Stop all tasks. Batches stay as they are."""
        await self._tasks.close()
        if self.transactions is not None:
            await self.transactions.close()

    def start_task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Start a task that is cancelled by close()."""
        return self._tasks.start(work)

    async def flush(self) -> None:
        """Send all queued batches at once, and wait until each is delivered or has failed."""
        self.accumulator.close_open()
        for batch in list(self.accumulator.incomplete):
            await finished(batch)

    async def confirm_unacknowledged(self) -> None:
        """Wait until brokers have read all acks=0 requests."""
        for node in list(self._nodes.values()):
            await node.confirm_unacknowledged()

    def fail_all(self, error: Callable[[], Exception]) -> None:
        """Fail all batches and all waiting calls: the producer has ended."""
        self.accumulator.topics.clear()
        self.accumulator.memory.refuse_waiters(error)
        for batch in list(self.accumulator.incomplete):
            if batch.in_flight:
                batch.queue.returned(batch)
            self.accumulator.finish(batch, error())

    # Requests in flight

    def request_sent(self) -> None:
        self._requests_in_flight += 1

    def request_ended(self) -> None:
        self._requests_in_flight -= 1
        if not self._requests_in_flight:
            self._all_ended.set()

    async def wait_for_responses(self) -> None:
        """Wait until no request is in flight, at most request.timeout.ms."""
        while self._requests_in_flight:
            self._all_ended.clear()
            await self._all_ended.wait()

    def _batch_failed(self, batch: Batch, error: Exception) -> None:
        assert self.transactions is not None, "only transactional producers register this"
        self.transactions.batch_failed(batch, error)

    # Scheduling

    def schedule(self, queue: PartitionQueue) -> None:
        if not queue.scheduled:
            queue.scheduled = True
            if queue.node_sender is not None:
                queue.node_sender.add(queue)
            else:
                self._ready.append(queue)
                self._wakeup.set()

    def reroute(self, queue: PartitionQueue) -> None:
        """Find the leader of a queue again."""
        queue.node_sender = None
        queue.scheduled = False
        if queue.batches:
            self.schedule(queue)

    def schedule_at(self, queue: PartitionQueue, at_ms: int) -> None:
        """Schedule the queue at this time."""
        if queue.timer_ms is not None and queue.timer_ms <= at_ms:
            return
        queue.timer_ms = at_ms
        heappush(self._timers, (at_ms, next(self._timer_numbers), queue))
        if self._timers[0][2] is queue:
            self._wakeup.set()

    # Time

    async def _run_timers(self) -> None:
        while True:
            now_ms = self.clock.monotonic_ms()
            self.take_metadata()
            self._fire_timers(now_ms)
            for batch in self.accumulator.expired(now_ms):
                # Expiring one batch may have failed others.
                if not batch.done:
                    self.outcomes.expire(batch)
            self._route()
            await self._wakeup.wait(self._wait_ms())

    def _wait_ms(self) -> float | None:
        times = [self._timers[0][0]] if self._timers else []
        expiry_ms = self.accumulator.next_expiry_ms()
        if expiry_ms is not None:
            times.append(expiry_ms)
        # At least 1: the clock has whole milliseconds and may lag behind the loop's time.
        return max(1, min(times) - self.clock.monotonic_ms()) if times else None

    def _fire_timers(self, now_ms: int) -> None:
        timers = self._timers
        while timers and timers[0][0] <= now_ms:
            at_ms, _, queue = heappop(timers)
            # Skip a timer that an earlier one has replaced.
            if queue.timer_ms == at_ms:
                queue.timer_ms = None
                if queue.batches:
                    self.schedule(queue)

    # Topics and leaders

    async def _keep_topics_in_use(self) -> None:
        """Keep topics in use from being dropped as idle: append() does not touch the cluster's metadata."""
        while True:
            await asyncio.sleep(self.settings.metadata_max_idle_ms / 2000)
            # An idle producer may not have seen yet that a topic was deleted.
            self.take_metadata()
            for topic in [each for each in self.accumulator.topics.values() if each.used and each.led]:
                topic.used = False
                # The topic is known and has leaders, so this does not wait.
                await self.cluster.topic(topic.name)

    def take_metadata(self) -> None:
        """Apply new metadata to the topics in use."""
        metadata = self.cluster.metadata
        if metadata is self._applied_metadata:
            return
        self._applied_metadata = metadata
        for topic in self.accumulator.topics.values():
            self.take_topic(topic, metadata.topics.get(topic.name))

    def take_topic(self, topic: TopicQueues, news: TopicMetadata | None) -> None:
        """Apply new metadata to one topic; if it was recreated, its sequence numbers start again."""
        if topic.update(news):
            for queue in topic.queues:
                if queue.numbering is not None:
                    queue.numbering.restart()
                    self.outcomes.settle(queue)

    async def wait_for_topic(self, name: str, partition: int | None, deadline: Deadline) -> TopicQueues:
        """Wait until the topic and the partition are known; UnknownTopic at the deadline."""
        if partition is not None and partition < 0:
            raise ValueError(f"partition {partition} is negative")
        failures = 0
        while True:
            known = await self.cluster.topic(name, deadline, create=True)
            into = self.accumulator.topic(name)
            self.take_metadata()
            if not into.known:
                self.take_topic(into, known)
            if partition is None or partition < into.count:
                return into
            failures += 1
            wait_ms = self._backoff.wait_ms(failures)
            if wait_ms >= deadline.remaining_ms:
                raise UnknownTopic(
                    about=f"partition {TopicPartition(name, partition)}",
                    message=f"the topic has {into.count} partitions",
                )
            await asyncio.sleep(wait_ms / 1000)
            with suppress(ClientError, TimeoutError):
                # Ignore a failed refresh: the next round tries again or raises at the deadline.
                async with asyncio.timeout_at(deadline.at):
                    await self.cluster.refresh([name])

    def look_up_soon(self, topic: str) -> None:
        """Look up a topic in the background, for try_send()."""
        if topic not in self._topic_lookups:
            self._topic_lookups.add(topic)
            self._tasks.start(self._look_up_topic(topic))

    async def _look_up_topic(self, topic: str) -> None:
        try:
            known = await self.cluster.topic(topic, Deadline(self.settings.max_block_ms), create=True)
            self.take_topic(self.accumulator.topic(topic), known)
        except ClientError:
            # The next try_send() starts another lookup.
            pass
        finally:
            self._topic_lookups.discard(topic)

    def _route(self) -> None:
        ready, self._ready = self._ready, []
        for queue in ready:
            led = self.cluster.known_leader(queue.tp)
            if led is None:
                self._leaderless[queue] = None
            else:
                queue.node_sender = self._node(led[0])
                queue.node_sender.add(queue)
        if self._leaderless and not self._is_finding_leaders:
            self._is_finding_leaders = True
            self._tasks.start(self._find_leaders())

    def _node(self, node: int) -> NodeSender:
        found = self._nodes.get(node)
        if found is None:
            found = self._nodes[node] = NodeSender(node, self, self._on_crash)
            self._tasks.start(found.run())
        return found

    async def _find_leaders(self) -> None:
        """Refresh metadata until each queue has a leader or is empty."""
        failures = 0
        while self._leaderless:
            failure: ClientError | None = None
            try:
                await self.cluster.refresh({queue.tp.topic for queue in self._leaderless})
            except ClientError as error:
                failure = error
            self.take_metadata()
            waiting, self._leaderless = self._leaderless, {}
            for queue in waiting:
                self._apply_leader_lookup(queue, failure)
            if self._leaderless:
                failures += 1
                await asyncio.sleep(self._backoff.wait_ms(failures) / 1000)
        self._is_finding_leaders = False

    def _apply_leader_lookup(self, queue: PartitionQueue, failure: ClientError | None) -> None:
        code = self.cluster.metadata.errors.get(queue.tp.topic)
        if code is not None:
            failure = refused(code, about=f"topic {queue.tp.topic}")
            if not is_retriable(failure):
                self._fail_batches(list(queue.batches), failure)
        queue.last_error = failure or queue.last_error
        if self.cluster.known_leader(queue.tp) is not None or not queue.batches:
            self.reroute(queue)
        else:
            self._leaderless[queue] = None

    # The producer id

    def _identity_ready(self) -> None:
        for topic in self.accumulator.topics.values():
            for queue in topic.queues:
                if queue.needs_identity and queue.batches:
                    queue.needs_identity = False
                    self.schedule(queue)

    def _identity_failed(self, error: ClientError) -> bool:
        """Fail the waiting batches if the error is final. Return whether any batch still waits."""
        waiting = False
        for topic in self.accumulator.topics.values():
            for queue in topic.queues:
                if queue.needs_identity and queue.batches:
                    queue.last_error = error
                    if is_retriable(error):
                        waiting = True
                    else:
                        self._fail_batches([batch for batch in queue.batches if not batch.numbered], error)
        return waiting

    def _fail_batches(self, batches: list[Batch], error: Exception) -> None:
        for batch in batches:
            if not batch.done:
                self.outcomes.fail(batch, error)
