"""Where the numbers of metrics.py are kept, and what has to be measured for them (pure)."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from barnabas.base.exposition import escaped
from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.metadata.image import MetadataImage
from barnabas.replication.partition import Partition
from barnabas.replication.replicas import Replicas
from barnabas.server.coordination.groups import Groups
from barnabas.server.coordination.transactions import Transactions
from barnabas.server.descriptors import DescriptorBudget
from barnabas.server.fetch.sessions import FetchSessions
from barnabas.server.metrics.request_stats import RequestStats
from barnabas.server.network.pool import ConnectionPool
from barnabas.storage.manager import LogManager


@value(kw_only=True)
class ProcessFigures:
    """What the operating system says of this process."""

    resident_bytes: int
    cpu_seconds: float
    started_at_seconds: float
    open_files: int
    open_files_max: int


class Space(NamedTuple):
    """The room on the disk that a log directory is on."""

    free_bytes: int
    total_bytes: int


@value(kw_only=True)
class Sources:
    """Where the numbers are."""

    version: str
    node_id: int
    cluster_id: str
    stats: RequestStats
    # By the names of the listeners, as far as they are bound.
    pools: Callable[[], Mapping[str, ConnectionPool]]
    replicas: Replicas
    logs: LogManager
    sessions: FetchSessions
    groups: Groups
    transactions: Transactions
    # What the broker goes by, and the last offset of the metadata log that is committed.
    image: Callable[[], MetadataImage]
    committed_offset: Callable[[], int]
    process: Callable[[], ProcessFigures]
    # None if they are not divided.
    descriptors: DescriptorBudget | None = None


class Scrape:
    """One look at everything. What several families need is made once."""

    def __init__(self, sources: Sources, space: Mapping[str, Space]) -> None:
        self.sources: Final = sources
        self.space: Final = space
        self.process: Final = sources.process()
        self.partitions: Final = _labelled(sources.replicas.partitions)


def _labelled(partitions: Mapping[TopicPartition, Partition]) -> list[tuple[str, Partition]]:
    """Every partition with its labels. There may be many, and this is done in one go."""
    topics = {tp.topic: escaped(tp.topic) for tp in partitions}
    return [
        (f'{{topic="{topics[topic]}",partition="{index}"}}', one)
        for (topic, index), one in partitions.items()
    ]
