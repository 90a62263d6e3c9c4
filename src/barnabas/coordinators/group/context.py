"""The state that classic/, consumer/ and offsets/ of one shard share."""

from collections.abc import Callable
from random import Random
from typing import Final

from barnabas.base.ids import Uuid, format_uuid
from barnabas.base.memory import shrink
from barnabas.coordinators.decision.timers import Timers
from barnabas.coordinators.group.consumer.patterns import TopicPatterns
from barnabas.coordinators.group.group import Group
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage

# Kafka's default of max.message.bytes.
_BATCH_BYTES_MAX: Final = 1_048_588


class ShardContext:
    """Groups, timers, settings and metadata of one shard.

    The shell replaces `settings` and `image`; the shard changes the rest.
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
        del self.groups[group_id]
        shrink(self.groups)

    def new_uuid(self) -> Uuid:
        return Uuid(self.rng.randbytes(16))

    def new_member_id(self) -> str:
        """A member id as consumer clients generate it: 22 characters of base64."""
        return format_uuid(self.new_uuid())
