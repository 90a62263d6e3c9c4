"""A client's view of a cluster: connections, leaders, and metadata that is kept up to date.

Admin, Producer and Consumer each have one. connection() and leader() route requests; ask() sends a request to
any or a given broker and retries retriable errors. Topics in use are refreshed together, every
metadata.max.age.ms and when a leader turns out to be wrong.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Final

from barnabas.base.errors import Malformed
from barnabas.base.ids import TopicPartition
from barnabas.base.tasks import Tasks
from barnabas.client.connection import Connection, key_of
from barnabas.client.deadline import Backoff, Deadline, retry
from barnabas.client.errors import BrokerUnavailable, ClientError, Closed, NotKafka, refused
from barnabas.client.metadata import Metadata, TopicMetadata
from barnabas.client.nodes import MAIN_CHANNEL, Nodes
from barnabas.client.ports import ClientPorts, system_ports
from barnabas.client.settings import ClientSettings, join_address, split_address
from barnabas.client.shared import SharedWork
from barnabas.client.topics_in_use import TopicsInUse
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import MetadataRequest, MetadataRequestTopic

logger = logging.getLogger(__name__)
_FINDING: Final = "finding"


class Cluster:
    def __init__(self, settings: ClientSettings, ports: ClientPorts | None = None) -> None:
        self.settings = settings
        self.ports = ports or system_ports()
        self.metadata = Metadata()
        # The error of the last background refresh; None if it succeeded.
        self.last_failure: ClientError | None = None
        self._nodes = Nodes(settings, self.ports.rng)
        self._shared = SharedWork()
        self._topics_in_use = TopicsInUse()
        self._backoff = Backoff(
            first_ms=settings.retry_backoff_ms, max_ms=settings.retry_backoff_max_ms, rng=self.ports.rng
        )
        self._tasks = Tasks(self._crashed)
        self._wanted = asyncio.Event()
        self._crash: BaseException | None = None
        self._closed = False

    # Start and close

    async def start(self) -> None:
        """Fetch the broker list from any broker; raise if none responds within default.api.timeout.ms."""
        deadline = Deadline(self.settings.default_api_timeout_ms)
        try:
            await retry(lambda: self.refresh([]), deadline=deadline, backoff=self._backoff, what="bootstrap")
            # close() may have been called meanwhile: then start no task.
            self._check()
        except BaseException:
            await self.close()
            raise
        self._tasks.start(self._keep_fresh())

    async def close(self) -> None:
        """End all tasks and connections. Pending requests raise Closed."""
        self._closed = True
        await self._tasks.close()
        await self._shared.close()
        await self._nodes.close()

    def _crashed(self, error: BaseException) -> None:
        self._crash = error

    def _check(self) -> None:
        if self._closed:
            raise Closed()
        if self._crash is not None:
            raise self._crash

    # Connections

    async def connection(self, node_id: int, *, channel: str = MAIN_CHANNEL) -> Connection:
        """Return a connection to a node, opened if needed. Use a channel of its own for waiting fetches."""
        self._check()
        node = self.metadata.nodes.get(node_id)
        if node is None:
            raise BrokerUnavailable([f"node {node_id}"], "not in the cluster metadata")
        return await self._nodes.connect(node.host, node.port, channel)

    async def any_connection(self) -> Connection:
        """Return the least busy open connection; otherwise connect to a known node or a bootstrap server."""
        self._check()
        ready = min(self._nodes.ready(), key=lambda each: each.in_flight, default=None)
        if ready is not None:
            return ready
        return await self._shared.join(_FINDING, self._find_connection)

    async def _find_connection(self) -> Connection:
        known = [(node.host, node.port) for node in self.metadata.nodes.values()]
        first = [split_address(each) for each in self.settings.bootstrap_servers]
        self.ports.rng.shuffle(known)
        self.ports.rng.shuffle(first)
        failures: dict[tuple[str, int], ClientError] = {}
        for place in dict.fromkeys([*known, *first]):
            try:
                return await self._nodes.connect(*place)
            except ClientError as error:
                failures[place] = error
        addresses = [join_address(host, port) for host, port in failures]
        if all(isinstance(error, NotKafka) for error in failures.values()):
            raise NotKafka(", ".join(addresses), "; ".join(str(error) for error in failures.values()))
        reasons = (getattr(error, "why", str(error)) for error in failures.values())
        raise BrokerUnavailable(addresses, "; ".join(reasons))

    async def ask(
        self,
        request: object,
        *,
        deadline: Deadline | None = None,
        node: int | None = None,
        timeout_ms: float | None = None,
    ) -> Any:
        """Ask `node` (default: any broker). Network errors are retried until the deadline."""
        deadline = deadline or Deadline(self.settings.default_api_timeout_ms)
        limit_ms = self.settings.request_timeout_ms if timeout_ms is None else timeout_ms

        async def attempt() -> Any:
            connection = await (self.any_connection() if node is None else self.connection(node))
            return await connection.ask(request, timeout_ms=limit_ms)

        what = key_of(request).name
        return await retry(attempt, deadline=deadline, backoff=self._backoff, what=what)

    # Metadata

    async def refresh(self, topics: Iterable[str] | None = None, *, create: bool = False) -> Metadata:
        """Fetch metadata of these topics (default: all topics in use). One attempt."""
        self._check()
        names = frozenset(self._topics_in_use.names if topics is None else topics)
        return await self._shared.join((names, create), lambda: self._refresh(names, create))

    async def _refresh(self, names: frozenset[str], create: bool) -> Metadata:
        connection = await self.any_connection()
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in sorted(names)],
            allow_auto_topic_creation=create,
        )
        began = self._topics_in_use.start_refresh()
        answer = await connection.ask(request, timeout_ms=self.settings.request_timeout_ms)
        if answer.error_code != ErrorCode.NONE:
            raise refused(answer.error_code, about="metadata")
        if not answer.brokers:
            raise BrokerUnavailable([connection.address], "its metadata lists no brokers yet")
        try:
            self.metadata = self.metadata.with_answer(answer)
        except Malformed as error:
            raise NotKafka(connection.address, str(error)) from error
        self._topics_in_use.refreshed(names, began)
        self._nodes.keep_only(self.metadata.nodes.values())
        return self.metadata

    async def topic(
        self, name: str, deadline: Deadline | None = None, *, create: bool = False, partitions: int = 0
    ) -> TopicMetadata:
        """Return a topic's metadata, or fetch it until the topic exists and has a leader, or UnknownTopic.

        Also fetch it if fewer than `partitions` partitions are known: there may be more by now.
        """
        self._check()
        self._topics_in_use.touch(name, self._now())
        known = self.metadata.topics.get(name)
        if known is not None and _is_led(known) and len(known.partitions) >= partitions:
            return known

        async def attempt() -> TopicMetadata:
            metadata = await self.refresh([name], create=create)
            found = metadata.topics.get(name)
            if found is None:
                code = metadata.errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                raise refused(code, about=f"topic {name}")
            if not _is_led(found):
                raise refused(ErrorCode.LEADER_NOT_AVAILABLE, about=f"topic {name}")
            return found

        deadline = deadline or Deadline(self.settings.default_api_timeout_ms)
        return await retry(attempt, deadline=deadline, backoff=self._backoff, what=f"metadata of {name}")

    async def leader(self, tp: TopicPartition, deadline: Deadline | None = None) -> int:
        """Return the leader of a partition; wait until there is one."""
        deadline = deadline or Deadline(self.settings.default_api_timeout_ms)

        async def attempt() -> int:
            topic = await self.topic(tp.topic, deadline)
            led = self.known_leader(tp)
            if led is None:
                topic = (await self.refresh([tp.topic])).topics.get(tp.topic, topic)
                led = self.known_leader(tp)
            if led is not None:
                return led[0]
            is_there = tp.partition < len(topic.partitions)
            code = ErrorCode.LEADER_NOT_AVAILABLE if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise refused(code, about=f"partition {tp}")

        return await retry(attempt, deadline=deadline, backoff=self._backoff, what=f"leader of {tp}")

    async def by_leader(
        self, tps: Iterable[TopicPartition], deadline: Deadline | None = None
    ) -> dict[int, list[TopicPartition]]:
        """Group partitions by leader."""
        deadline = deadline or Deadline(self.settings.default_api_timeout_ms)
        led: dict[int, list[TopicPartition]] = {}
        for tp in tps:
            led.setdefault(await self.leader(tp, deadline), []).append(tp)
        return led

    def known_leader(self, tp: TopicPartition) -> tuple[int, int] | None:
        """Return leader id and epoch if known and not reported as wrong."""
        topic = self.metadata.topics.get(tp.topic)
        found = None if topic is None else topic.leader_of(tp.partition)
        if found is None or self._topics_in_use.is_forgotten(tp, found.leader_epoch):
            return None
        if found.leader not in self.metadata.nodes:
            # The leader's address is unknown: treat the partition as leaderless, so that callers retry.
            return None
        return found.leader, found.leader_epoch

    def forget_leader(self, tp: TopicPartition, epoch: int) -> None:
        """Report a wrong or unreachable leader: it is not used again before the next metadata refresh."""
        self._topics_in_use.touch(tp.topic, self._now())
        self._topics_in_use.forget(tp, epoch)
        self._wanted.set()

    def take_hint(self, tp: TopicPartition, leader: int, epoch: int, endpoints: Iterable[Any]) -> bool:
        """Apply the leader hint of a Produce or Fetch error (KIP-951). Return True if it was new."""
        news = self.metadata.with_leader(tp, leader, epoch, endpoints)
        if news is not None:
            self.metadata = news
        return news is not None

    async def _keep_fresh(self) -> None:
        """Refresh topics in use when their metadata is old or a leader was reported as wrong."""
        failures = 0
        while True:
            wait_ms = self._backoff.wait_ms(failures) if failures else self.settings.metadata_max_age_ms
            try:
                async with asyncio.timeout(wait_ms / 1000):
                    await self._wanted.wait()
            except TimeoutError:
                pass
            idle_s = self.settings.metadata_max_idle_ms / 1000
            self.metadata = self.metadata.without(self._topics_in_use.drop_idle(self._now() - idle_s))
            self._wanted.clear()
            try:
                await self.refresh()
                failures, self.last_failure = 0, None
            except ClientError as error:
                failures, self.last_failure = failures + 1, error
                logger.info("metadata refresh failed error=%s", error, extra={"error": error})
            if self._topics_in_use.has_forgotten:
                # Leaders were reported as wrong after the request was sent.
                self._wanted.set()
            # Limit the refresh rate: electing a leader takes a moment.
            await asyncio.sleep(self._backoff.wait_ms(max(1, failures)) / 1000)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _is_led(topic: TopicMetadata) -> bool:
    return any(topic.leader_of(each.partition) is not None for each in topic.partitions)
