"""Sessions of brokers: the last heartbeat, and the broker's offset in the metadata log.

Only the active controller has them, in memory: after a change of controller every unfenced broker starts a
new session. The time is monotonic and a parameter.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from barnabas.base.values import value
from barnabas.controller.decision import Contact

_EVERYTHING: Final = 2**63 - 1


@value(kw_only=True)
class Session:
    """`shutdown_offset` is that of the last record of its controlled shutdown, or None.

    A broker that has read up to `registered_at` has read its own registration.
    """

    contact_ms: int
    fenced: bool
    registered_at: int
    metadata_offset: int = -1
    shutdown_offset: int | None = None


class Sessions:
    """The sessions of all registered brokers."""

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms: Final = timeout_ms
        self._sessions: dict[int, Session] = {}

    def __iter__(self) -> Iterator[int]:
        return iter(self._sessions)

    def start(self, broker_id: int, *, fenced: bool, registered_at: int, now_ms: int) -> None:
        self._sessions[broker_id] = Session(contact_ms=now_ms, fenced=fenced, registered_at=registered_at)

    def end(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)

    def touch(self, contact: Contact, *, now_ms: int, last_offset: int) -> None:
        """Record a sign of life; `last_offset` is the last offset of the log after the broker's request."""
        before = None if contact.is_new else self._sessions.get(contact.broker_id)
        assert before is not None or contact.registered, f"broker {contact.broker_id} has no session"
        offset = None if before is None else before.shutdown_offset
        registered_at = last_offset if before is None or contact.registered else before.registered_at
        if contact.fenced:
            # A fenced broker may stop at once on its next heartbeat.
            offset = None
        elif contact.shutting_down and offset is None:
            offset = last_offset
        self._sessions[contact.broker_id] = Session(
            contact_ms=now_ms,
            fenced=contact.fenced,
            registered_at=registered_at,
            metadata_offset=contact.metadata_offset,
            shutdown_offset=offset,
        )

    def fence(self, broker_id: int) -> None:
        session = self._sessions.get(broker_id)
        if session is not None:
            self._sessions[broker_id] = replace(session, fenced=True, shutdown_offset=None)

    def is_alive(self, broker_id: int, now_ms: int) -> bool:
        """Whether the broker is unfenced and its session has not timed out."""
        session = self._sessions.get(broker_id)
        return session is not None and not session.fenced and not self._is_stale(session, now_ms)

    def registered_at(self, broker_id: int) -> int | None:
        session = self._sessions.get(broker_id)
        return None if session is None else session.registered_at

    def shutdown_offset(self, broker_id: int) -> int | None:
        session = self._sessions.get(broker_id)
        return None if session is None else session.shutdown_offset

    def lowest_active_offset(self) -> int:
        """The lowest metadata offset of the unfenced brokers that are not shutting down."""
        return min(
            (
                one.metadata_offset
                for one in self._sessions.values()
                if not one.fenced and one.shutdown_offset is None
            ),
            default=_EVERYTHING,
        )

    def stale(self, now_ms: int) -> int | None:
        """The broker with the oldest heartbeat, if its session has timed out."""
        live = [(one.contact_ms, broker) for broker, one in self._sessions.items() if not one.fenced]
        oldest = min(live, default=None)
        if oldest is None or not self._is_stale(self._sessions[oldest[1]], now_ms):
            return None
        return oldest[1]

    def next_stale_ms(self) -> int | None:
        """When the next session times out without a heartbeat."""
        oldest = min((one.contact_ms for one in self._sessions.values() if not one.fenced), default=None)
        return None if oldest is None else oldest + self.timeout_ms + 1

    def _is_stale(self, session: Session, now_ms: int) -> bool:
        return session.contact_ms + self.timeout_ms < now_ms
