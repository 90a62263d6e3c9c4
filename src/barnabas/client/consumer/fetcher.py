"""The task that fetches from one broker, and what it does with the responses.

One fetch is in flight at a time, on a connection of its own, because a fetch that waits for records would
block all requests behind it. While a response is read, the next one is fetched. Partitions with an unread
response are left out; such a fetch does not wait at the broker, because the partitions left out would wait,
too.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from barnabas.base.errors import Malformed
from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.client.connection import Connection
from barnabas.client.consumer.core import Core
from barnabas.client.consumer.decode import find_complete_batches
from barnabas.client.consumer.errors import CorruptRecords
from barnabas.client.consumer.fetch_session import (
    FINAL_EPOCH,
    NO_SESSION,
    FetchSession,
    PartitionFetch,
    SessionRequest,
)
from barnabas.client.consumer.positions import CompletedFetch, PartitionState
from barnabas.client.errors import ClientError, is_retriable, refused
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse, NodeEndpoint, PartitionData
from barnabas.protocol.schema.fields import Records
from barnabas.records.buffers import bytes_of_view

FETCH_CHANNEL: Final = "fetch"
_TOPIC_IDS_FROM: Final = 13
_SESSION_ERRORS: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
# After this many rejected sessions in a row, back off.
_SESSION_TRIES_MAX: Final = 2
# Time to tell a broker that a session ends; otherwise the broker evicts it by itself.
_END_SESSION_MS: Final = 1_000


NO_REPLICA: Final = -1

# This broker cannot serve the partition now: look up the leader and retry.
_MOVED: Final = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        # PositionUpdater reports a deleted topic once the metadata confirms it.
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    )
)
# Transient errors: the broker has not seen the epoch yet, or had an internal error.
_TRANSIENT: Final = frozenset((ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR))


class RequestedPartition(NamedTuple):
    """One partition of a fetch in flight."""

    one: PartitionState
    generation: int
    offset: int


class Plan(NamedTuple):
    """The next fetch."""

    asked: list[RequestedPartition]
    bytes_max: int
    # Whether the broker may wait for records.
    waits: bool


class Fetcher:
    """run() ends when no assigned partition is fetched from this broker any more."""

    def __init__(self, core: Core, node: int) -> None:
        self._core = core
        self._node = node
        self._settings = core.settings
        self._session = FetchSession()
        self._session_tries = 0
        self._wake = asyncio.Event()
        # A fetch without waiting found nothing: no other such fetch before this time.
        self._next_poll_s = 0.0
        self._connection: Connection | None = None

    def wake(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        try:
            while True:
                self._wake.clear()
                mine = [one for one in self._core.positions if self._core.route(one) == self._node]
                if not mine:
                    break
                plan = self._plan(mine)
                if plan is not None:
                    await self._fetch(plan)
                    continue
                await self._sleep(mine)
        finally:
            # PositionUpdater starts a new fetcher when needed.
            if self._core.fetchers.get(self._node) is self:
                del self._core.fetchers[self._node]
        await self.end_session()

    # Planning

    def _plan(self, mine: list[PartitionState]) -> Plan | None:
        now_s = self._core.due_s()
        able = [one for one in mine if one.is_fetchable(now_s)]
        wanting = [one for one in able if not one.is_full]
        waits = len(wanting) == len(able)
        if not wanting or (not waits and (2 * len(wanting) < len(able) or now_s < self._next_poll_s)):
            return None
        room = self._room(mine, len(wanting))
        if room is None:
            return None
        asked = [RequestedPartition(one, one.generation, one.fetch_offset) for one in wanting]
        return Plan(asked, min(self._settings.fetch_max_bytes, room), waits)

    def _room(self, mine: list[PartitionState], count: int) -> int | None:
        """Return how many bytes may be fetched from this broker; None if too few."""
        buffer = self._core.buffer
        share = self._settings.queued_max_bytes // max(1, len(self._core.fetchers))
        most = min(self._settings.fetch_max_bytes, count * self._settings.max_partition_fetch_bytes)
        enough = max(1, min(most, share // 2))
        if share - buffer.buffered_bytes.get(self._node, 0) < enough:
            # Data of paused partitions must not block the others.
            for one in mine:
                if one.paused and one.queue:
                    buffer.evict(one)
        room = share - buffer.buffered_bytes.get(self._node, 0)
        return room if room >= enough else None

    async def _sleep(self, mine: list[PartitionState]) -> None:
        """Sleep until something changes or a retry is due."""
        now_s = self._core.due_s()
        times = [one.retry_at_s for one in mine if one.retry_at_s > now_s]
        if self._next_poll_s > now_s:
            times.append(self._next_poll_s)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(min(times, default=None)):
                await self._wake.wait()

    # Fetching

    async def _fetch(self, plan: Plan) -> None:
        try:
            connection = await self._core.cluster.connection(self._node, channel=FETCH_CHANNEL)
            self._connection = connection
            # Positions may have changed while the connection was opened.
            plan.asked[:] = [each for each in plan.asked if self._core.is_current(each.one, each.generation)]
            if not plan.asked:
                return
            sent, answer = await self._send_fetch(connection, plan)
        except ClientError as error:
            self._session.failed()
            for one in self._current(plan):
                self._core.forget_leader(one, error)
            if not is_retriable(error):
                self._core.report_error(error)
            return
        if self._session.answered(answer, sent):
            self._session_tries = 0
            self._handle_response(plan, answer)
        else:
            self._handle_request_error(plan, ErrorCode.of(answer.error_code))

    async def _send_fetch(self, connection: Connection, plan: Plan) -> tuple[SessionRequest, FetchResponse]:
        version = connection.version_of(ApiKey.FETCH)
        uses_ids = version >= _TOPIC_IDS_FROM and all(each.one.topic_id != ZERO_UUID for each in plan.asked)
        wanted = {
            each.one.tp: PartitionFetch(
                each.one.topic_id,
                each.offset,
                each.one.leader_epoch,
                self._settings.max_partition_fetch_bytes,
            )
            for each in plan.asked
        }
        sent = self._session.request(wanted, uses_ids=uses_ids)
        wait_ms = self._settings.fetch_max_wait_ms if plan.waits else 0
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=self._settings.fetch_min_bytes,
            max_bytes=plan.bytes_max,
            isolation_level=int(self._settings.read_committed),
            session_id=sent.session_id,
            session_epoch=sent.epoch,
            topics=sent.topics,
            forgotten_topics_data=sent.forgotten,
            rack_id=self._settings.client_rack,
        )
        answer: FetchResponse = await connection.ask(
            request,
            timeout_ms=self._settings.request_timeout_ms + wait_ms,
            version=version if uses_ids else min(version, _TOPIC_IDS_FROM - 1),
        )
        return sent, answer

    def _current(self, plan: Plan) -> list[PartitionState]:
        return [each.one for each in plan.asked if self._core.is_current(each.one, each.generation)]

    # Responses

    def _handle_response(self, plan: Plan, answer: FetchResponse) -> None:
        find = _finder(plan.asked)
        brought = False
        seen: set[TopicPartition] = set()
        for topic in answer.responses:
            for data in topic.partitions:
                asked = find(topic.topic, topic.topic_id, data.partition_index)
                if asked is None:
                    continue
                seen.add(asked.one.tp)
                brought |= handle_partition(
                    self._core, asked, data, node=self._node, endpoints=answer.node_endpoints
                )
        if self._settings.enable_partition_eof:
            # In a session, a partition missing in the response has not changed.
            for asked in plan.asked:
                if asked.one.tp not in seen and self._core.is_current(asked.one, asked.generation):
                    handle_no_records(self._core, asked.one)
        if not plan.waits and not brought:
            self._next_poll_s = self._core.now_s() + self._settings.fetch_max_wait_ms / 1000

    def _handle_request_error(self, plan: Plan, code: ErrorCode) -> None:
        """Handle an error of the whole request. After a session error the next fetch starts a new session."""
        self._session_tries += 1
        if code in _SESSION_ERRORS and self._session_tries <= _SESSION_TRIES_MAX:
            return
        error = refused(code, about=f"fetch from node {self._node}")
        for one in self._current(plan):
            self._core.forget_leader(one, error)
        if not is_retriable(error) and code not in _SESSION_ERRORS:
            self._core.report_error(error)

    async def end_session(self) -> None:
        """Close the fetch session at the broker, best effort.

        It uses the main connection: a waiting fetch would block it on the fetch connection.
        """
        if self._session.id == NO_SESSION or self._connection is None or self._connection.closed:
            return
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            session_id=self._session.id,
            session_epoch=FINAL_EPOCH,
            topics=[],
            forgotten_topics_data=[],
        )
        with suppress(ClientError, TimeoutError):
            async with asyncio.timeout(_END_SESSION_MS / 1000):
                connection = await self._core.cluster.connection(self._node)
                await connection.ask(request, timeout_ms=self._settings.request_timeout_ms)


def _finder(asked: list[RequestedPartition]) -> Callable[[str, Uuid, int], RequestedPartition | None]:
    """Return a lookup for the partitions of a response, by topic id or name."""
    by_name: dict[TopicPartition, RequestedPartition] = {each.one.tp: each for each in asked}
    names = {each.one.topic_id: each.one.tp.topic for each in asked}

    def find(topic: str, topic_id: Uuid, partition: int) -> RequestedPartition | None:
        name = topic if topic_id == ZERO_UUID else names.get(topic_id)
        return None if name is None else by_name.get(TopicPartition(name, partition))

    return find


# One partition of a response


def handle_partition(
    core: Core, asked: RequestedPartition, data: PartitionData, *, node: int, endpoints: list[NodeEndpoint]
) -> bool:
    """Apply the response. Return True if it brought records."""
    one = asked.one
    # The offset can differ within a generation if the leader moved and two brokers were asked.
    if not core.is_current(one, asked.generation) or one.fetch_offset != asked.offset:
        return False
    if data.error_code != ErrorCode.NONE:
        _handle_error(core, one, ErrorCode.of(data.error_code), data, endpoints)
        return False
    one.failures, one.missing_count, one.no_prefetch = 0, 0, False
    _update_watermarks(one, data)
    if data.preferred_read_replica != NO_REPLICA:
        one.preferred = data.preferred_read_replica
        lasts_ms = core.settings.metadata_max_age_ms
        one.preferred_until_ms = core.cluster.ports.clock.monotonic_ms() + lasts_ms
        # Another fetcher takes over, and may have to be started.
        core.wake_all()
        return False
    if not data.records:
        handle_no_records(core, one)
        return False
    return _add_records(core, one, data, node)


def handle_no_records(core: Core, one: PartitionState) -> None:
    """Handle a response without records: report the end of the partition if it is reached."""
    end = one.end_offset(committed=core.settings.read_committed)
    if 0 <= end <= one.fetch_offset:
        core.buffer.report_end(one)
        core.reader_wakeup.set()


def _update_watermarks(one: PartitionState, data: PartitionData) -> None:
    if data.high_watermark >= 0:
        one.high_watermark = data.high_watermark
    if data.last_stable_offset >= 0:
        one.last_stable_offset = data.last_stable_offset
    if data.log_start_offset >= 0:
        one.log_start_offset = data.log_start_offset


def _add_records(core: Core, one: PartitionState, data: PartitionData, node: int) -> bool:
    records, start, end = _bytes_of(data.records or b"")
    try:
        whole, next_offset, last_epoch = find_complete_batches(records, start, end)
    except Malformed as error:
        core.stop(one, CorruptRecords(one.tp, one.fetch_offset, str(error)))
        return False
    if next_offset <= one.fetch_offset:
        why = f"{end - start} bytes of records contain no complete batch that ends after it"
        core.stop(one, CorruptRecords(one.tp, one.fetch_offset, why))
        return False
    committed = core.settings.read_committed
    aborted = data.aborted_transactions if committed else None
    fetch = CompletedFetch(
        data=records,
        start=start,
        whole=whole,
        from_offset=one.fetch_offset,
        next_offset=next_offset,
        last_epoch=last_epoch,
        end_offset=one.end_offset(committed=committed),
        aborted=[(each.first_offset, each.producer_id) for each in aborted or ()],
        node=node,
    )
    core.buffer.add(one, fetch)
    core.positions.move_to_end(one)
    core.reader_wakeup.set()
    return True


def _bytes_of(records: Records) -> tuple[bytes, int, int]:
    """Return a buffer with the records, and their start and end in it.

    The buffer is the whole response if most of it belongs to this partition. Otherwise the records are
    copied, so that an unread partition does not keep the whole response in memory.
    """
    found = bytes_of_view(records) if isinstance(records, memoryview) else None
    if found is not None and 2 * len(records) >= len(found[0]):
        data, start = found
        return data, start, start + len(records)
    copy = bytes(records)
    return copy, 0, len(copy)


def _handle_error(
    core: Core, one: PartitionState, code: ErrorCode, data: PartitionData, endpoints: list[NodeEndpoint]
) -> None:
    if code is ErrorCode.OFFSET_OUT_OF_RANGE:
        _handle_out_of_range(core, one)
    elif code in _MOVED:
        hint = data.current_leader
        if hint is None or not core.cluster.take_hint(one.tp, hint.leader_id, hint.leader_epoch, endpoints):
            core.forget_leader(one, code.name)
        else:
            one.preferred = None
            core.wake_all()
    elif code in _TRANSIENT:
        one.preferred = None
        core.retry_later(one, code.name)
    elif code is ErrorCode.CORRUPT_MESSAGE:
        core.stop(one, CorruptRecords(one.tp, one.fetch_offset, "the broker returned CORRUPT_MESSAGE"))
    else:
        core.stop(one, refused(code, about=f"partition {one.tp}"))


def _handle_out_of_range(core: Core, one: PartitionState) -> None:
    if one.preferred is not None:
        # A follower may lag behind the position: ask the leader next.
        one.preferred = None
        core.wake_all()
    elif one.queue:
        # The offset may be in range once the queue is read; if not, the error is handled then.
        one.no_prefetch = True
    else:
        core.reset_out_of_range(one)
