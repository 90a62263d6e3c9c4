"""The sources of the metrics in catalog.py, and the values measured once per scrape (pure)."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from barnabas.base.exposition import escaped
from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.metadata.image import MetadataImage
from barnabas.replication.partition import Partition
from barnabas.replication.replicas import Replicas
from barnabas.server.coordination.groups import GroupCoordinator
from barnabas.server.coordination.transactions import TransactionCoordinator
from barnabas.server.fetch.sessions import FetchSessions
from barnabas.server.metrics.request_stats import RequestStats
from barnabas.server.network.pool import ConnectionPool
from barnabas.server.ports import DescriptorBudget
from barnabas.storage.manager import LogManager


@value(kw_only=True)
class ProcessFigures:
    """Figures that the operating system reports about this process."""

    resident_bytes: int
    cpu_seconds: float
    started_at_seconds: float
    open_files: int
    open_files_max: int


class Space(NamedTuple):
    """Free and total space of the disk of a log directory."""

    free_bytes: int
    total_bytes: int


@value(kw_only=True)
class Sources:
    """The components whose numbers are reported."""

    version: str
    node_id: int
    cluster_id: str
    stats: RequestStats
    # By listener name, for the listeners that are bound.
    pools: Callable[[], Mapping[str, ConnectionPool]]
    replicas: Replicas
    logs: LogManager
    sessions: FetchSessions
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    # The metadata that the broker has applied, and the last committed offset of the metadata log.
    image: Callable[[], MetadataImage]
    committed_offset: Callable[[], int]
    process: Callable[[], ProcessFigures]
    # None if they are not divided.
    descriptors: DescriptorBudget | None = None


class Scrape:
    """One scrape. Values that several metric families need are computed once."""

    def __init__(self, sources: Sources, space: Mapping[str, Space]) -> None:
        self.sources: Final = sources
        self.space: Final = space
        self.process: Final = sources.process()
        self.partitions: Final = _labelled(sources.replicas.partitions)


def _labelled(partitions: Mapping[TopicPartition, Partition]) -> list[tuple[str, Partition]]:
    """Every partition with its labels, in one step: topic names are escaped once."""
    topics = {tp.topic: escaped(tp.topic) for tp in partitions}
    return [
        (f'{{topic="{topics[topic]}",partition="{index}"}}', one)
        for (topic, index), one in partitions.items()
    ]
