"""One task per broker that sends ready batches, with several requests in flight."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.client.connection import Connection
from barnabas.client.errors import ClientError, NotKafka, UnsupportedByBroker
from barnabas.client.producer.batch import Batch
from barnabas.client.producer.queues import PartitionQueue
from barnabas.client.producer.transaction_state import V1_UNTIL
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.cluster import MetadataRequest
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.records.header import Codec

if TYPE_CHECKING:
    from barnabas.client.producer.sender import Sender

# First PRODUCE versions with topic ids, and with zstd.
_IDS_FROM: Final = 13
_ZSTD_FROM: Final = 7


class NodeSender:
    def __init__(self, node: int, sender: "Sender", on_crash: Callable[[BaseException], None]) -> None:
        self.node = node
        self._sender = sender
        self._settings = sender.settings
        self._on_crash = on_crash
        self._wakeup = Wakeup()
        # Served round-robin: a queue that was served is appended again.
        self._ready: dict[PartitionQueue, None] = {}
        self._in_flight = 0
        self._in_flight_max = self._settings.max_in_flight_requests_per_connection
        self._one_at_a_time = self._in_flight_max == 1
        # The connection of requests without a response (acks=0).
        self._unacknowledged_connection: Connection | None = None

    def add(self, queue: PartitionQueue) -> None:
        self._ready[queue] = None
        self._wakeup.set()

    async def run(self) -> None:
        while True:
            await self._wakeup.wait()
            while self._ready and self._in_flight < self._in_flight_max:
                try:
                    connection = await self._sender.cluster.connection(self.node)
                    await connection.drained()
                except ClientError as error:
                    self._return_queues(error)
                    break
                batches = self._drain()
                if batches:
                    self._post(connection, batches)

    def _return_queues(self, error: ClientError) -> None:
        """Return all queues to the sender: the broker is unreachable, so leaders may have moved."""
        cluster = self._sender.cluster
        ready, self._ready = self._ready, {}
        for queue in ready:
            queue.last_error = error
            led = cluster.known_leader(queue.tp)
            if led is not None and led[0] == self.node:
                cluster.forget_leader(queue.tp, led[1])
            self._sender.reroute(queue)

    async def confirm_unacknowledged(self) -> None:
        """Wait until the broker has read all acks=0 requests, by sending a request that has a response."""
        if self._unacknowledged_connection is None:
            return
        timeout_ms = self._settings.request_timeout_ms
        # If the connection breaks, requests in flight are lost; with acks=0 that is not reported.
        with suppress(ClientError, TimeoutError):
            # The timeout of ask() covers the response only; throttling may delay the request.
            async with asyncio.timeout(timeout_ms / 1000):
                await self._unacknowledged_connection.ask(MetadataRequest(topics=[]), timeout_ms=timeout_ms)

    # Selecting batches

    def _drain(self) -> list[Batch]:
        """Take at most one batch per partition, up to max.request.size bytes."""
        batches: list[Batch] = []
        room = self._settings.max_request_size
        now_ms = self._sender.clock.monotonic_ms()
        transactions = self._sender.transactions
        for queue in list(self._ready):
            # Always take the first batch: its size is an estimate until it is compressed.
            if batches and queue.batches and queue.batches[0].wire_size() > room:
                break
            del self._ready[queue]
            queue.scheduled = False
            led = self._sender.cluster.known_leader(queue.tp)
            if led is None or led[0] != self.node:
                self._sender.reroute(queue)
                continue
            if transactions is not None and queue.batches and not transactions.admits(queue):
                continue
            batch = self._take(queue, now_ms)
            if batch is not None:
                room -= len(batch.seal())
                batches.append(batch)
        return batches

    def _take(self, queue: PartitionQueue, now_ms: int) -> Batch | None:
        identity = self._sender.identity.current
        batch = queue.take(now_ms, identity, one_at_a_time=self._one_at_a_time)
        ready_ms = queue.ready_at()
        if ready_ms is not None and ready_ms > now_ms:
            self._sender.schedule_at(queue, ready_ms)
        elif batch is not None and ready_ms is not None:
            self._sender.schedule(queue)
        elif batch is None and queue.needs_identity:
            # The queue is scheduled again when the id arrives.
            self._sender.identity.want(identity)
        return batch

    # Requests

    def _post(self, connection: Connection, batches: list[Batch]) -> None:
        try:
            version = self._version(connection, batches)
            names: dict[Uuid, str] = {}
            request = self._request(batches, version, names)
            if self._settings.acks_number == 0:
                connection.tell(request, version=version)
                self._unacknowledged_connection = connection
                for batch in batches:
                    self._sender.outcomes.sent_without_acks(batch)
                return
            answer = connection.send(request, timeout_ms=self._settings.request_timeout_ms, version=version)
        except ClientError as error:
            for batch in batches:
                self._sender.outcomes.response_lost(batch, error, sent=False)
            return
        self._in_flight += 1
        self._sender.request_sent()
        answer.add_done_callback(partial(self._on_response, batches, names, connection.address))

    def _version(self, connection: Connection, batches: list[Batch]) -> int:
        version = connection.version_of(ApiKey.PRODUCE)
        transactions = self._sender.transactions
        if transactions is not None:
            if not transactions.state.is_v2:
                version = min(version, V1_UNTIL[ApiKey.PRODUCE])
            elif version <= V1_UNTIL[ApiKey.PRODUCE]:
                why = f"transactions of version 2 need a version above {version}"
                raise UnsupportedByBroker("PRODUCE", connection.address, why)
        if version < _ZSTD_FROM and self._settings.codec is Codec.ZSTD:
            why = f"zstd needs version {_ZSTD_FROM}, the broker supports up to {version}"
            raise UnsupportedByBroker("PRODUCE", connection.address, why)
        topics = self._sender.accumulator.topics
        if any(topics[batch.queue.tp.topic].topic_id == ZERO_UUID for batch in batches):
            version = min(version, _IDS_FROM - 1)
        return version

    def _request(self, batches: list[Batch], version: int, names: dict[Uuid, str]) -> ProduceRequest:
        """Build the request, and record in `names` which topic ids it uses: a name may be reused later."""
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            name, number = batch.queue.tp
            into = topics.get(name)
            if into is None:
                topic_id = self._sender.accumulator.topics[name].topic_id or ZERO_UUID
                names[topic_id] = name
                into = topics[name] = TopicProduceData(
                    name=name if version < _IDS_FROM else "", topic_id=topic_id, partition_data=[]
                )
            into.partition_data.append(PartitionProduceData(index=number, records=batch.seal()))
        return ProduceRequest(
            transactional_id=self._settings.transactional_id,
            acks=self._settings.acks_number,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=list(topics.values()),
        )

    # Responses

    def _on_response(
        self, batches: list[Batch], names: dict[Uuid, str], address: str, answer: asyncio.Future[Any]
    ) -> None:
        self._in_flight -= 1
        self._wakeup.set()
        try:
            error = answer.exception()
            if error is None:
                self._resolve(batches, names, address, answer.result())
            elif isinstance(error, ClientError):
                for batch in batches:
                    if batch.in_flight:
                        self._sender.outcomes.response_lost(batch, error)
            else:
                raise error
        except Exception as crash:
            self._on_crash(crash)
        finally:
            self._sender.request_ended()

    def _resolve(
        self, batches: list[Batch], names: dict[Uuid, str], address: str, answer: ProduceResponse
    ) -> None:
        rows = {
            (topic.name or names.get(topic.topic_id), row.index): row
            for topic in answer.responses
            for row in topic.partition_responses
        }
        for batch in batches:
            row = rows.get(batch.queue.tp)
            if not batch.in_flight:
                # The producer was closed in the meantime and failed the batch.
                continue
            if row is None:
                missing = NotKafka(address, f"PRODUCE response has no entry for {batch.queue.tp}")
                self._sender.outcomes.response_lost(batch, missing)
            else:
                self._sender.outcomes.response_received(batch, row, answer.node_endpoints)


class Wakeup:
    """Lets one task wait for set() or a timeout, cheaper than asyncio.Event with asyncio.timeout.

    If set() is called while the task runs, its next wait() returns at once.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._waiter: asyncio.Future[None] | None = None

    def set(self) -> None:
        self._is_set = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self, timeout_ms: float | None = None) -> None:
        """Wait until set() or the timeout."""
        if not self._is_set and (timeout_ms is None or timeout_ms > 0):
            loop = asyncio.get_running_loop()
            assert self._waiter is None, "a second task waits"
            self._waiter = waiter = loop.create_future()
            timer = None if timeout_ms is None else loop.call_later(timeout_ms / 1000, _wake, waiter)
            try:
                await waiter
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()
        self._is_set = False


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
