"""State shared by classic/, consumer/ and offsets/ of one shard, and the common interface of groups."""

from collections.abc import Callable
from random import Random
from typing import Final, Protocol

from barnabas.base.ids import Uuid, format_uuid
from barnabas.base.memory import shrink
from barnabas.coordinators.decision.outcome import Record
from barnabas.coordinators.decision.timers import Timers
from barnabas.coordinators.group.consumer.patterns import TopicPatterns
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
# Kafka's default of max.message.bytes.
_BATCH_BYTES_MAX: Final = 1_048_588


class Group(Protocol):
    """A group of any kind, as used by offsets and administration. Guards raise GroupError."""

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

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def check_offset_delete(self) -> None: ...

    def check_delete(self) -> None: ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def offsets_expire_from(self, committed_ms: int) -> int | None:
        """The start of the retention time of an offset committed at `committed_ms`; None while it cannot
        expire."""

    def tombstones(self) -> list[Record]:
        """The records that delete the group from the log."""


class Ground:
    """The shared state of one shard. The shell replaces `settings` and `image`; the shard changes the rest.

    `batch_bytes_max` returns the current maximum size of a batch. `patterns` is shared by all shards of the
    broker.
    """

    def __init__(
        self,
        settings: GroupSettings,
        rng: Random,
        image: MetadataImage = EMPTY_IMAGE,
        batch_bytes_max: Callable[[], int] = lambda: _BATCH_BYTES_MAX,
        patterns: TopicPatterns | None = None,
    ) -> None:
        self.settings = settings
        self.batch_bytes_max: Final = batch_bytes_max
        self.rng: Final = rng
        self.image = image
        self.patterns: Final = patterns or TopicPatterns()
        self.groups: Final[dict[str, Group]] = {}
        self.timers: Final = Timers()

    def remove(self, group_id: str) -> None:
        """A group is gone."""
        del self.groups[group_id]
        shrink(self.groups)

    def new_uuid(self) -> Uuid:
        return Uuid(self.rng.randbytes(16))

    def new_member_id(self) -> str:
        """A member id as consumer clients generate it: 22 characters of base64."""
        return format_uuid(self.new_uuid())

    def new_suffix(self) -> str:
        """The unique part of a classic member id: a random UUID in hexadecimal."""
        digits = self.rng.randbytes(16).hex()
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
