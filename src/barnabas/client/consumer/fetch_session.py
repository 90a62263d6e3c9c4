"""The client's side of fetch sessions (KIP-227): the broker keeps the partition list, requests send changes.

There is one session per broker. request() builds the next request, answered() and failed() note its outcome.
After any failure the next request is full and starts a new session. Pure.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.base.values import value
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchResponse, FetchTopic, ForgottenTopic

NO_SESSION: Final = 0
FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
_EPOCH_MAX: Final = 2**31 - 1


class PartitionFetch(NamedTuple):
    """One partition of a fetch."""

    topic_id: Uuid
    offset: int
    leader_epoch: int
    bytes_max: int


@value
class SessionRequest:
    """The session part of a fetch request: all partitions if it is full, otherwise the changes."""

    session_id: int
    epoch: int
    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]

    @property
    def is_full(self) -> bool:
        return self.epoch == INITIAL_EPOCH


class FetchSession:
    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._uses_ids = True
        self._known: dict[TopicPartition, PartitionFetch] = {}

    @property
    def id(self) -> int:
        return self._id

    def request(self, wanted: Mapping[TopicPartition, PartitionFetch], *, uses_ids: bool) -> SessionRequest:
        """Build the request for `wanted`. Only a full request carries the order."""
        if uses_ids != self._uses_ids:
            # A session names topics either by id or by name.
            self.failed()
            self._uses_ids = uses_ids
        if self._epoch == INITIAL_EPOCH:
            self._known = dict(wanted)
            return SessionRequest(self._id, INITIAL_EPOCH, _topics(wanted.items(), uses_ids), [])
        changed = {tp: one for tp, one in wanted.items() if self._known.get(tp) != one}
        # A topic with another id was recreated: forget the old one as well.
        gone = [
            (tp, known)
            for tp, known in self._known.items()
            if tp not in wanted or (uses_ids and wanted[tp].topic_id != known.topic_id)
        ]
        self._known = dict(wanted)
        return SessionRequest(
            self._id, self._epoch, _topics(changed.items(), uses_ids), _forgotten(gone, uses_ids)
        )

    def answered(self, answer: FetchResponse, sent: SessionRequest) -> bool:
        """Note a response. Return False if it is an error of the session or the whole request."""
        code = answer.error_code
        if code != ErrorCode.NONE:
            if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._id = NO_SESSION
            self.failed()
            return False
        if answer.session_id == NO_SESSION:
            # The broker has no session, or has just ended it.
            self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
        else:
            self._id = answer.session_id
            self._epoch = 1 if sent.is_full or self._epoch == _EPOCH_MAX else self._epoch + 1
        return True

    def failed(self) -> None:
        """Start a new session, because the broker's state is unknown; the request also closes the old one."""
        self._epoch = INITIAL_EPOCH
        self._known = {}


def _topics(wanted: Iterable[tuple[TopicPartition, PartitionFetch]], uses_ids: bool) -> list[FetchTopic]:
    topics: list[FetchTopic] = []
    last: tuple[str, Uuid] | None = None
    for tp, one in wanted:
        if (tp.topic, one.topic_id) != last:
            last = (tp.topic, one.topic_id)
            topics.append(
                FetchTopic(topic_id=one.topic_id, partitions=[])
                if uses_ids
                else FetchTopic(topic=tp.topic, topic_id=ZERO_UUID, partitions=[])
            )
        topics[-1].partitions.append(
            FetchPartition(
                partition=tp.partition,
                current_leader_epoch=one.leader_epoch,
                fetch_offset=one.offset,
                partition_max_bytes=one.bytes_max,
            )
        )
    return topics


def _forgotten(gone: list[tuple[TopicPartition, PartitionFetch]], uses_ids: bool) -> list[ForgottenTopic]:
    topics: dict[tuple[str, Uuid], ForgottenTopic] = {}
    for tp, known in gone:
        key = (tp.topic, known.topic_id)
        if key not in topics:
            topics[key] = (
                ForgottenTopic(topic_id=known.topic_id, partitions=[])
                if uses_ids
                else ForgottenTopic(topic=tp.topic, topic_id=ZERO_UUID, partitions=[])
            )
        topics[key].partitions.append(tp.partition)
    return list(topics.values())
