"""Small values that all modules of this package share."""

from typing import Final, NamedTuple

from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.base.values import value

METADATA: Final = TopicPartition("__cluster_metadata", 0)
# Fixed for all clusters: AAAAAAAAAAAAAAAAAAAAAQ.
METADATA_TOPIC_ID: Final = Uuid(bytes(15) + b"\x01")

# Stands for no epoch, offset or node on the wire and on disk.
NONE: Final = -1


class OffsetAndEpoch(NamedTuple):
    """The end of a log or snapshot: the offset after its last record, and the epoch of that record.

    It also identifies a snapshot, which contains everything below the offset.
    """

    offset: int
    epoch: int

    def is_up_to_date_with(self, other: "OffsetAndEpoch") -> bool:
        """Whether a log with this end has everything that can be committed in a log with that end."""
        return (self.epoch, self.offset) >= (other.epoch, other.offset)


class LeaderAndEpoch(NamedTuple):
    """The leader, if known, and its epoch."""

    leader: int | None
    epoch: int


class Voter(NamedTuple):
    """One voter of the quorum, and its address."""

    id: int
    host: str
    port: int
    directory_id: Uuid = ZERO_UUID


@value
class Election:
    """The durable state of a node: the epoch, and its leader or the node that it voted for."""

    epoch: int = 0
    leader: int | None = None
    voted: int | None = None
