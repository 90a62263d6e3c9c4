"""Fetch sessions (KIP-227): the partitions that a client fetches, so that it need only send changes.

The cache has a limited number of slots. A session that has not been used for a while is evicted for a new
one. If there is none, no new session is created, and the client keeps sending full requests. Pure: the time
and the ids are passed in.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from barnabas.base.ids import Uuid
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

NO_SESSION: Final = 0
FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
_EPOCH_MAX: Final = 2**31 - 1
# Minimum age of a session, or time since its last use, before it may be evicted.
EVICTION_MS: Final = 120_000

IDS_FROM: Final = 13
NO_EPOCH: Final = -1
# The first version whose responses can report a diverging epoch.
DIVERGENCE_FROM: Final = 12

# A topic by id if the client uses ids, otherwise by name.
TopicKey: TypeAlias = Uuid | str
Key: TypeAlias = tuple[TopicKey, int]


class Wanted:
    """One partition of a fetch: what the client requests, and what its session last returned."""

    __slots__ = ("asked", "high_watermark", "name", "start_offset", "topic")

    def __init__(self, topic: TopicKey, asked: FetchPartition) -> None:
        self.topic: Final = topic
        self.asked = asked
        # The last known name of a topic that is requested by id.
        self.name: str | None = None
        self.high_watermark = -1
        self.start_offset = -1

    def is_news(self, data: PartitionData) -> bool:
        """Whether the response must include this partition. Remembers what it returns."""
        news = (
            len(data.records or b"") > 0
            or data.error_code != 0
            or data.diverging_epoch is not None
            or data.preferred_read_replica != -1
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.start_offset
        )
        # After an error the next response must include this partition in any case.
        self.high_watermark = -1 if data.error_code != 0 else data.high_watermark
        self.start_offset = data.log_start_offset
        return news


@dataclass(slots=True, kw_only=True)
class Session:
    """One session. `wanted` is in the order in which partitions are served next."""

    id: int
    uses_ids: bool
    # The version of the last request.
    version: int
    epoch: int
    created_ms: int
    used_ms: int
    wanted: dict[Key, Wanted]


class Plan:
    """The partitions that one request fetches; none if `error` is set."""

    def __init__(
        self,
        wanted: list[Wanted],
        session_id: int = NO_SESSION,
        error: ErrorCode = ErrorCode.NONE,
        session: Session | None = None,
        incremental: bool = False,
    ) -> None:
        self.wanted = wanted
        self.session_id = session_id
        self.error = error
        self.session = session
        # The response contains only partitions with changes.
        self.incremental = incremental


class FetchSessions:
    """The sessions of one broker."""

    def __init__(self, slots_max: int, new_id: Callable[[], int]) -> None:
        self.slots_max = slots_max
        self.evicted = 0
        self._new_id = new_id
        # Ordered from least to most recently used.
        self._sessions: dict[int, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def partitions(self) -> int:
        return sum(len(session.wanted) for session in self._sessions.values())

    def plan(self, request: FetchRequest, version: int, now_ms: int) -> Plan:
        """Return the partitions to fetch for a request.

        A full request may open a session, and closes the session that it names.
        """
        uses_ids = version >= IDS_FROM
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            wanted = _wanted(request, uses_ids)
            if request.session_epoch == FINAL_EPOCH:
                return Plan(list(wanted.values()))
            return self._open(wanted, version, now_ms)
        session = self._sessions.get(request.session_id)
        if session is None:
            return Plan([], error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return Plan([], error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_ids != uses_ids:
            return Plan([], error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return self._go_on(session, request, version, now_ms)

    def _go_on(self, session: Session, request: FetchRequest, version: int, now_ms: int) -> Plan:
        if version < DIVERGENCE_FROM <= session.version:
            for one in session.wanted.values():
                one.asked.last_fetched_epoch = NO_EPOCH
        session.version = version
        for key, fresh in _wanted(request, session.uses_ids).items():
            known = session.wanted.get(key)
            if known is None:
                session.wanted[key] = fresh
            else:
                known.asked = fresh.asked
        for topic in request.forgotten_topics_data:
            gone: TopicKey = topic.topic_id if session.uses_ids else topic.topic
            for index in topic.partitions:
                session.wanted.pop((gone, index), None)
        if not session.wanted:
            del self._sessions[session.id]
            return Plan([])
        session.epoch = 1 if session.epoch == _EPOCH_MAX else session.epoch + 1
        session.used_ms = now_ms
        self._sessions[session.id] = self._sessions.pop(session.id)
        return Plan(list(session.wanted.values()), session.id, session=session, incremental=True)

    def _open(self, wanted: dict[Key, Wanted], version: int, now_ms: int) -> Plan:
        if not self._has_room(len(wanted), now_ms):
            return Plan(list(wanted.values()))
        session_id = self._new_id()
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._new_id()
        session = Session(
            id=session_id,
            uses_ids=version >= IDS_FROM,
            version=version,
            epoch=1,
            created_ms=now_ms,
            used_ms=now_ms,
            wanted=wanted,
        )
        self._sessions[session_id] = session
        return Plan(list(wanted.values()), session_id, session=session)

    def _has_room(self, size: int, now_ms: int) -> bool:
        if len(self._sessions) < self.slots_max:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        stale = now_ms - oldest.used_ms > EVICTION_MS
        if not stale:
            # A session that is old enough is evicted for a larger one, for which a session saves more.
            oldest = min(self._sessions.values(), key=lambda session: len(session.wanted))
            if len(oldest.wanted) >= size or now_ms - oldest.created_ms <= EVICTION_MS:
                return False
        del self._sessions[oldest.id]
        self.evicted += 1
        return True

    def served(self, plan: Plan, answered: Iterable[tuple[Wanted, PartitionData]]) -> None:
        """Move partitions that returned records to the end, so that all get their turn."""
        if plan.session is None:
            return
        wanted = plan.session.wanted
        for one, data in answered:
            key = (one.topic, one.asked.partition)
            if len(data.records or b"") > 0 and wanted.get(key) is one:
                del wanted[key]
                wanted[key] = one


def _wanted(request: FetchRequest, uses_ids: bool) -> dict[Key, Wanted]:
    found: dict[Key, Wanted] = {}
    for topic in request.topics:
        topic_key: TopicKey = topic.topic_id if uses_ids else topic.topic
        for asked in topic.partitions:
            found[topic_key, asked.partition] = Wanted(topic_key, asked)
    return found
