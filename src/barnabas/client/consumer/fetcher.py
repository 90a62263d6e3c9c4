"""The task that fetches from one broker.

One fetch is in flight at a time, on a connection of its own, because a fetch that waits for records would
block all requests behind it. While a response is read, the next one is fetched. Partitions with an unread
response are left out; such a fetch does not wait at the broker, because the partitions left out would wait,
too.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.client.connection import Connection
from barnabas.client.consumer.answers import Asked, take_answer, take_silence
from barnabas.client.consumer.core import Core
from barnabas.client.consumer.positions import Assigned
from barnabas.client.consumer.session import FINAL_EPOCH, NO_SESSION, FetchSession, SessionRequest, Wanted
from barnabas.client.errors import ClientError, is_retriable, refused
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse

FETCH_LANE: Final = "fetch"
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


class Plan(NamedTuple):
    """The next fetch."""

    asked: list[Asked]
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

    def poke(self) -> None:
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
            # Upkeep starts a new fetcher when needed.
            if self._core.fetchers.get(self._node) is self:
                del self._core.fetchers[self._node]
        await self.end_session()

    # Planning

    def _plan(self, mine: list[Assigned]) -> Plan | None:
        now_s = self._core.due_s()
        able = [one for one in mine if one.is_fetchable(now_s)]
        wanting = [one for one in able if not one.is_full]
        waits = len(wanting) == len(able)
        if not wanting or (not waits and (2 * len(wanting) < len(able) or now_s < self._next_poll_s)):
            return None
        room = self._room(mine, len(wanting))
        if room is None:
            return None
        asked = [Asked(one, one.generation, one.fetch_offset) for one in wanting]
        return Plan(asked, min(self._settings.fetch_max_bytes, room), waits)

    def _room(self, mine: list[Assigned], count: int) -> int | None:
        """Return how many bytes may be fetched from this broker; None if too few."""
        delivery = self._core.delivery
        share = self._settings.queued_max_bytes // max(1, len(self._core.fetchers))
        most = min(self._settings.fetch_max_bytes, count * self._settings.max_partition_fetch_bytes)
        enough = max(1, min(most, share // 2))
        if share - delivery.held.get(self._node, 0) < enough:
            # Data of paused partitions must not block the others.
            for one in mine:
                if one.paused and one.queue:
                    delivery.shed(one)
        room = share - delivery.held.get(self._node, 0)
        return room if room >= enough else None

    async def _sleep(self, mine: list[Assigned]) -> None:
        """Sleep until something changes or a retry is due."""
        now_s = self._core.due_s()
        times = [one.not_before_s for one in mine if one.not_before_s > now_s]
        if self._next_poll_s > now_s:
            times.append(self._next_poll_s)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(min(times, default=None)):
                await self._wake.wait()

    # Fetching

    async def _fetch(self, plan: Plan) -> None:
        try:
            connection = await self._core.cluster.connection(self._node, lane=FETCH_LANE)
            self._connection = connection
            # Positions may have changed while the connection was opened.
            plan.asked[:] = [each for each in plan.asked if self._core.is_current(each.one, each.generation)]
            if not plan.asked:
                return
            sent, answer = await self._ask(connection, plan)
        except ClientError as error:
            self._session.failed()
            for one in self._current(plan):
                self._core.forget_leader(one, error)
            if not is_retriable(error):
                self._core.complain(error)
            return
        if self._session.answered(answer, sent):
            self._session_tries = 0
            self._take(plan, answer)
        else:
            self._take_refusal(plan, ErrorCode.of(answer.error_code))

    async def _ask(self, connection: Connection, plan: Plan) -> tuple[SessionRequest, FetchResponse]:
        version = connection.version_of(ApiKey.FETCH)
        uses_ids = version >= _TOPIC_IDS_FROM and all(each.one.topic_id != ZERO_UUID for each in plan.asked)
        wanted = {
            each.one.tp: Wanted(
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

    def _current(self, plan: Plan) -> list[Assigned]:
        return [each.one for each in plan.asked if self._core.is_current(each.one, each.generation)]

    # Responses

    def _take(self, plan: Plan, answer: FetchResponse) -> None:
        find = _finder(plan.asked)
        brought = False
        seen: set[TopicPartition] = set()
        for topic in answer.responses:
            for data in topic.partitions:
                asked = find(topic.topic, topic.topic_id, data.partition_index)
                if asked is None:
                    continue
                seen.add(asked.one.tp)
                brought |= take_answer(
                    self._core, asked, data, node=self._node, endpoints=answer.node_endpoints
                )
        if self._settings.enable_partition_eof:
            # In a session, a partition missing in the response has not changed.
            for asked in plan.asked:
                if asked.one.tp not in seen and self._core.is_current(asked.one, asked.generation):
                    take_silence(self._core, asked.one)
        if not plan.waits and not brought:
            self._next_poll_s = self._core.now_s() + self._settings.fetch_max_wait_ms / 1000

    def _take_refusal(self, plan: Plan, code: ErrorCode) -> None:
        """Handle an error of the whole request. After a session error the next fetch starts a new session."""
        self._session_tries += 1
        if code in _SESSION_ERRORS and self._session_tries <= _SESSION_TRIES_MAX:
            return
        error = refused(code, about=f"fetch from node {self._node}")
        for one in self._current(plan):
            self._core.forget_leader(one, error)
        if not is_retriable(error) and code not in _SESSION_ERRORS:
            self._core.complain(error)

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


def _finder(asked: list[Asked]) -> Callable[[str, Uuid, int], Asked | None]:
    """Return a lookup for the partitions of a response, by topic id or name."""
    by_name: dict[TopicPartition, Asked] = {each.one.tp: each for each in asked}
    names = {each.one.topic_id: each.one.tp.topic for each in asked}

    def find(topic: str, topic_id: Uuid, partition: int) -> Asked | None:
        name = topic if topic_id == ZERO_UUID else names.get(topic_id)
        return None if name is None else by_name.get(TopicPartition(name, partition))

    return find
