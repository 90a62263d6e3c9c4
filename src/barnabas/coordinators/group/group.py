"""The common interface of classic and consumer groups, as used by offsets and administration."""

from typing import Final, Protocol

from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import Now, Record, Refused

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"


class GroupError(Refused):
    """A refused request: Kafka's error code and a message. Raised before any state has changed."""


class Group(Protocol):
    """A group of any kind. Guards raise GroupError."""

    id: str

    @property
    def kind(self) -> str:
        """CLASSIC or CONSUMER."""

    @property
    def protocol_type(self) -> str:
        """The protocol type in ListGroups: "consumer" for consumers, "" if the group never had members."""

    @property
    def state(self) -> str:
        """Kafka's name of the state: "Stable", "PreparingRebalance", "Assigning"..."""

    @property
    def is_empty(self) -> bool: ...

    def check_commit(
        self, member_id: str, instance_id: str | None, generation_or_epoch: int, *, is_txn: bool, version: int
    ) -> None: ...

    def check_commit_of(
        self, topic_id: Uuid, partition: int, generation_or_epoch: int, member_id: str
    ) -> None:
        """Check one partition of a commit that check_commit() has accepted."""

    def extend_session(self, member_id: str, now: Now) -> None:
        """A member has committed offsets. In a classic group that counts as a heartbeat."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def check_offset_delete(self) -> None: ...

    def check_delete(self) -> None: ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def offsets_expire_from(self, committed_ms: int) -> int | None:
        """The start of the retention time of an offset committed at `committed_ms`; None while it cannot
        expire."""

    def tombstones(self) -> list[Record]:
        """The records that delete the group from the log."""
