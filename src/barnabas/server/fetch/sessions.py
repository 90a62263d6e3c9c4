"""Fetch sessions (KIP-227): what a client fetches, remembered, so that it need not say it again each time.

The cache has a limited number of slots. A session that nobody used for a while makes room for a new one; if
there is no such session, the new one is not made, and its client goes on sending everything. Pure: the time
and the ids are handed in.
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
# How long a session is safe from making room for another.
EVICTION_MS: Final = 120_000

IDS_FROM: Final = 13
NO_EPOCH: Final = -1
# The first version whose responses can tell that the client's log diverges from ours.
DIVERGENCE_FROM: Final = 12

# A topic by id where the client speaks ids, otherwise by name.
TopicKey: TypeAlias = Uuid | str
Key: TypeAlias = tuple[TopicKey, int]


class Wanted:
    """One partition of a fetch: what the client asks for, and what it was told last in its session."""

    __slots__ = ("asked", "high_watermark", "name", "start_offset", "topic")

    def __init__(self, topic: TopicKey, asked: FetchPartition) -> None:
        self.topic: Final = topic
        self.asked = asked
        # What a topic that is asked for by its id was called, as long as it was there.
        self.name: str | None = None
        self.high_watermark = -1
        self.start_offset = -1

    def is_news(self, data: PartitionData) -> bool:
        """Whether the client has to be told; what it is told is remembered."""
        news = (
            len(data.records or b"") > 0
            or data.error_code != 0
            or data.diverging_epoch is not None
            or data.preferred_read_replica != -1
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.start_offset
        )
        # After an error the client has to hear from this partition again, whatever comes.
        self.high_watermark = -1 if data.error_code != 0 else data.high_watermark
        self.start_offset = data.log_start_offset
        return news


@dataclass(slots=True, kw_only=True)
class Session:
    """Its partitions in the order in which they are served next."""

    id: int
    uses_ids: bool
    # Of the last request.
    version: int
    epoch: int
    created_ms: int
    used_ms: int
    wanted: dict[Key, Wanted]


class Plan:
    """What one request fetches. With an error, nothing."""

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
        # Only what is news goes into the answer.
        self.incremental = incremental


class FetchSessions:
    """The sessions of one broker."""

    def __init__(self, slots_max: int, new_id: Callable[[], int]) -> None:
        self.slots_max = slots_max
        self.evicted = 0
        self._new_id = new_id
        # The one that was not used for the longest time comes first.
        self._sessions: dict[int, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def partitions(self) -> int:
        return sum(len(session.wanted) for session in self._sessions.values())

    def plan(self, request: FetchRequest, version: int, now_ms: int) -> Plan:
        """What to fetch for a request. A full request may open a session, and ends the one it names."""
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
            # One that lives long enough gives way to a larger one, for which a session saves more.
            oldest = min(self._sessions.values(), key=lambda session: len(session.wanted))
            if len(oldest.wanted) >= size or now_ms - oldest.created_ms <= EVICTION_MS:
                return False
        del self._sessions[oldest.id]
        self.evicted += 1
        return True

    def served(self, plan: Plan, answered: Iterable[tuple[Wanted, PartitionData]]) -> None:
        """Those who got records are served last next time, so that all get their turn."""
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
