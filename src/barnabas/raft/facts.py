"""The small facts that everything in this room speaks of."""

from typing import Final, NamedTuple

from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.base.values import value

METADATA: Final = TopicPartition("__cluster_metadata", 0)
# Fixed for all clusters: AAAAAAAAAAAAAAAAAAAAAQ.
METADATA_TOPIC_ID: Final = Uuid(bytes(15) + b"\x01")

# Epochs and offsets on the wire and on the disk, where there is none.
NONE: Final = -1


class OffsetAndEpoch(NamedTuple):
    """Where something ends: the offset behind its last record, and the epoch of that record.

    It also names a snapshot: everything before the offset is in it.
    """

    offset: int
    epoch: int

    def is_up_to_date_with(self, other: "OffsetAndEpoch") -> bool:
        """Whether a log that ends here has everything that can be committed in one that ends there."""
        return (self.epoch, self.offset) >= (other.epoch, other.offset)


class LeaderAndEpoch(NamedTuple):
    """Who leads, if that is known, and in which epoch."""

    leader: int | None
    epoch: int


class Voter(NamedTuple):
    """One member of the quorum, and where it listens."""

    id: int
    host: str
    port: int
    directory_id: Uuid = ZERO_UUID


@value
class Election:
    """What a node must not forget: the epoch, and in it the leader or the one it voted for."""

    epoch: int = 0
    leader: int | None = None
    voted: int | None = None
