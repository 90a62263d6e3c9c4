"""The table of all metrics of a broker, each with a function that reads its value (pure).

Nothing here counts. Each component keeps its own numbers, and a scrape reads them.
docs/reference/metrics.md is generated from the table. The text format is in base/exposition.py, the HTTP
endpoint in http_server.py.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from barnabas.base.exposition import Dialect, Kind, Metric, Sample, end, histogram, labelled, render
from barnabas.base.faults import REPORTS
from barnabas.coordinators.runtime.host import State
from barnabas.coordinators.txn.state import TxnState
from barnabas.replication.partition import Partition
from barnabas.server.coordination.groups import GroupHost
from barnabas.server.coordination.transactions import TxnHost
from barnabas.server.metrics.request_stats import BOUNDS_NS
from barnabas.server.metrics.sources import Scrape, Space
from barnabas.server.network.pool import ConnectionPool

_NS_PER_S: Final = 1_000_000_000


Read: TypeAlias = Callable[[Scrape], Iterable[Sample]]


class Row(NamedTuple):
    metric: Metric
    read: Read


def exposition(scrape: Scrape, dialect: Dialect) -> Iterator[bytes]:
    """Yield all metrics as text, in pieces that take a millisecond or two each."""
    for row in TABLE:
        yield from render(row.metric, row.read(scrape), dialect)
    yield end(dialect)


# How rows read


def _one(read: Callable[[Scrape], float]) -> Read:
    return lambda scrape: [Sample("", read(scrape))]


def _per_listener(read: Callable[[ConnectionPool], int]) -> Read:
    return lambda scrape: [
        Sample(labelled(listener=name), read(pool)) for name, pool in scrape.sources.pools().items()
    ]


def _descriptors(scrape: Scrape) -> Iterable[Sample]:
    budget = scrape.sources.descriptors
    if budget is None:
        return []
    shares = {"logs": budget.logs, "connections": budget.connections, "reserve": budget.reserve}
    return [Sample(labelled(use=use), count) for use, count in shares.items()]


def _shared(read: Callable[[ConnectionPool], int]) -> Read:
    """Read a value that all listeners of a broker share, from the first of them."""
    return lambda scrape: [Sample("", read(pool)) for pool in list(scrape.sources.pools().values())[:1]]


def _per_partition(read: Callable[[Partition], int]) -> Read:
    return lambda scrape: (Sample(labels, read(partition)) for labels, partition in scrape.partitions)


def _count(is_so: Callable[[Partition], bool]) -> Read:
    return _one(lambda scrape: sum(1 for _, partition in scrape.partitions if is_so(partition)))


def _build(scrape: Scrape) -> Iterable[Sample]:
    sources = scrape.sources
    labels = labelled(version=sources.version, node_id=sources.node_id, cluster_id=sources.cluster_id)
    return [Sample(labels, 1)]


def _requests(scrape: Scrape) -> Iterator[Sample]:
    bounds = [bound / _NS_PER_S for bound in BOUNDS_NS]
    for key, stats in scrape.sources.stats.apis.items():
        yield from histogram({"api": key.name}, bounds, stats.buckets, stats.total_ns / _NS_PER_S)


def _directories_online(scrape: Scrape) -> Iterable[Sample]:
    logs = scrape.sources.logs
    online = {directory.path for directory in logs.directories if directory.offline is None}
    return [Sample(labelled(path=path), int(path in online)) for path in logs.paths]


def _directories_full(scrape: Scrape) -> Iterable[Sample]:
    directories = scrape.sources.logs.directories
    return [Sample(labelled(path=directory.path), int(directory.full.is_full)) for directory in directories]


def _space(read: Callable[[Space], int]) -> Read:
    return lambda scrape: [Sample(labelled(path=path), read(one)) for path, one in scrape.space.items()]


def _hosts(scrape: Scrape) -> list[GroupHost]:
    return list(scrape.sources.groups.shards.hosts.values())


def _groups(scrape: Scrape) -> Iterable[Sample]:
    counted = Counter(
        (group.kind, group.state)
        for host in _hosts(scrape)
        if host.state is State.ACTIVE
        for group in host.shard.context.groups.values()
    )
    return [Sample(labelled(kind=kind, state=state), count) for (kind, state), count in counted.items()]


def _txn_hosts(scrape: Scrape) -> list[TxnHost]:
    return list(scrape.sources.transactions.shards.hosts.values())


def _transactional_ids(scrape: Scrape) -> Iterable[Sample]:
    counted = Counter(
        txn.state
        for host in _txn_hosts(scrape)
        if host.state is State.ACTIVE
        for txn in host.shard.table.txns.values()
    )
    return [Sample(labelled(state=state.title), counted[state]) for state in TxnState]


def _metadata_lag(scrape: Scrape) -> int:
    return max(0, scrape.sources.committed_offset() - scrape.sources.image().offset)


def _is_under_replicated(partition: Partition) -> bool:
    return partition.is_leader and len(partition.image.isr) < len(partition.image.replicas)


def _is_under_min_isr(partition: Partition) -> bool:
    needed = min(partition.log.config.min_insync_replicas, len(partition.image.replicas))
    return partition.is_leader and len(partition.image.isr) < needed


# The table

_LISTENER: Final = ("listener",)
_PARTITION: Final = ("topic", "partition")
_PATH: Final = ("path",)


def _counter(name: str, text: str, read: Read, labels: tuple[str, ...] = ()) -> Row:
    return Row(Metric(name, Kind.COUNTER, text, labels), read)


def _gauge(name: str, text: str, read: Read, labels: tuple[str, ...] = ()) -> Row:
    return Row(Metric(name, Kind.GAUGE, text, labels), read)


TABLE: Final[tuple[Row, ...]] = (
    Row(
        Metric(
            "barnabas_build_info",
            Kind.INFO,
            "The version of the broker, its node id and its cluster id.",
            ("version", "node_id", "cluster_id"),
        ),
        _build,
    ),
    # Requests
    Row(
        Metric(
            "barnabas_request_duration_seconds",
            Kind.HISTOGRAM,
            "Time from the start of a request to its response, including waits.",
            ("api",),
        ),
        _requests,
    ),
    _counter(
        "barnabas_network_received_bytes_total",
        "Bytes received from clients.",
        _per_listener(lambda pool: pool.bytes_in),
        _LISTENER,
    ),
    _counter(
        "barnabas_network_sent_bytes_total",
        "Bytes sent to clients.",
        _per_listener(lambda pool: pool.bytes_out),
        _LISTENER,
    ),
    _counter(
        "barnabas_long_requests_total",
        "Requests that were handled in slices because they have many items.",
        _shared(lambda pool: pool.long_requests.begun),
    ),
    _gauge(
        "barnabas_long_requests_waiting",
        "Long requests that wait because the maximum number of them is being handled.",
        _shared(lambda pool: pool.long_requests.waiting),
    ),
    _gauge(
        "barnabas_request_bytes",
        "Bytes of large incomplete requests and of requests that wait for their turn or their response.",
        _shared(lambda pool: pool.request_bytes.used),
    ),
    _gauge(
        "barnabas_request_bytes_limit",
        "Limit of barnabas_request_bytes. At the limit, large requests are no longer read.",
        _shared(lambda pool: pool.request_bytes.bytes_max),
    ),
    _gauge(
        "barnabas_request_bytes_paused_connections",
        "Connections not being read because the limit of request bytes is reached.",
        _shared(lambda pool: pool.request_bytes.paused),
    ),
    _counter(
        "barnabas_request_bytes_evictions_total",
        "Connections closed because they held request bytes for too long while others waited for room.",
        _shared(lambda pool: pool.request_bytes.evicted),
    ),
    _gauge(
        "barnabas_response_bytes",
        "Memory of responses that clients have not read yet, updated once a second.",
        _shared(lambda pool: pool.response_bytes.used),
    ),
    _gauge(
        "barnabas_response_bytes_limit",
        "Limit of barnabas_response_bytes. Above it, the connections that hold the most are closed.",
        _shared(lambda pool: pool.response_bytes.bytes_max),
    ),
    _counter(
        "barnabas_response_bytes_evictions_total",
        "Connections closed because they did not read their responses and others needed the memory.",
        _shared(lambda pool: pool.response_bytes.evicted),
    ),
    _counter(
        "barnabas_faults_total",
        "Unexpected exceptions in this process. Each is a bug in the broker; the log has the details.",
        _one(lambda _: REPORTS.total),
    ),
    _gauge("barnabas_connections", "Open connections.", _per_listener(len), _LISTENER),
    _counter(
        "barnabas_connections_accepted_total",
        "Connections accepted.",
        _per_listener(lambda pool: pool.accepted),
        _LISTENER,
    ),
    _counter(
        "barnabas_connections_refused_total",
        "Connections closed at once because a connection limit was reached.",
        _per_listener(lambda pool: pool.refused),
        _LISTENER,
    ),
    _counter(
        "barnabas_connections_waits_total",
        "Times that new connections had to wait because of max.connections or a creation rate.",
        _per_listener(lambda pool: pool.admission.waits),
        _LISTENER,
    ),
    _gauge(
        "barnabas_descriptors",
        "File descriptors available for logs, for connections and for everything else (reserve).",
        _descriptors,
        ("use",),
    ),
    _gauge(
        "barnabas_fetch_sessions",
        "Open fetch sessions.",
        _one(lambda scrape: len(scrape.sources.sessions)),
    ),
    _gauge(
        "barnabas_fetch_session_partitions",
        "Partitions in all fetch sessions.",
        _one(lambda scrape: scrape.sources.sessions.partitions()),
    ),
    _counter(
        "barnabas_fetch_session_evictions_total",
        "Fetch sessions evicted to make room for others.",
        _one(lambda scrape: scrape.sources.sessions.evicted),
    ),
    # Partitions
    _gauge("barnabas_partitions", "Partitions on this broker.", _one(lambda scrape: len(scrape.partitions))),
    _gauge(
        "barnabas_partitions_led", "Partitions that this broker leads.", _count(lambda one: one.is_leader)
    ),
    _gauge(
        "barnabas_partitions_offline",
        "Partitions of this broker that are offline.",
        _one(
            lambda scrape: (
                len(scrape.sources.replicas.offline) + sum(one.log.closed for _, one in scrape.partitions)
            )
        ),
    ),
    _gauge(
        "barnabas_partitions_under_replicated",
        "Partitions led by this broker with replicas that are not in sync.",
        _count(_is_under_replicated),
    ),
    _gauge(
        "barnabas_partitions_under_min_isr",
        "Partitions led by this broker with fewer in-sync replicas than min.insync.replicas.",
        _count(_is_under_min_isr),
    ),
    _gauge(
        "barnabas_log_start_offset",
        "The first offset that can be read.",
        _per_partition(lambda one: one.log.start_offset),
        _PARTITION,
    ),
    _gauge(
        "barnabas_log_high_watermark",
        "The offset up to which records are committed.",
        _per_partition(lambda one: one.log.high_watermark),
        _PARTITION,
    ),
    _gauge(
        "barnabas_log_last_stable_offset",
        "The offset up to which all transactions are complete.",
        _per_partition(lambda one: one.log.last_stable_offset),
        _PARTITION,
    ),
    _gauge(
        "barnabas_log_end_offset",
        "The offset of the next record.",
        _per_partition(lambda one: one.log.end_offset),
        _PARTITION,
    ),
    _gauge(
        "barnabas_log_size_bytes",
        "Size of all segments of the log.",
        _per_partition(lambda one: one.log.size),
        _PARTITION,
    ),
    _gauge(
        "barnabas_log_segments",
        "Segments of the log.",
        _per_partition(lambda one: len(one.log.segments)),
        _PARTITION,
    ),
    # Directories
    _gauge(
        "barnabas_log_directory_online",
        "1 if the log directory is online, 0 if it has failed.",
        _directories_online,
        _PATH,
    ),
    _gauge(
        "barnabas_log_directory_full",
        "1 if the disk was full at the last write. Writes are refused, reads continue.",
        _directories_full,
        _PATH,
    ),
    _gauge(
        "barnabas_log_directory_free_bytes",
        "Free space on the disk of a log directory. Missing while the disk does not answer.",
        _space(lambda space: space.free_bytes),
        _PATH,
    ),
    _gauge(
        "barnabas_log_directory_total_bytes",
        "Size of the disk of a log directory. Missing while the disk does not answer.",
        _space(lambda space: space.total_bytes),
        _PATH,
    ),
    # Groups
    _gauge(
        "barnabas_patterns_waiting",
        "Regular expressions of clients waiting to be compiled or matched.",
        _one(lambda scrape: scrape.sources.groups.pattern_work.waiting),
    ),
    _counter(
        "barnabas_group_assignments_in_background_total",
        "Assignments of large groups that were computed outside of the event loop.",
        _one(lambda scrape: scrape.sources.groups.assigner.computed),
    ),
    _gauge(
        "barnabas_groups",
        "Groups that this broker coordinates.",
        _groups,
        ("kind", "state"),
    ),
    _gauge(
        "barnabas_committed_offsets",
        "Offsets that these groups have committed, counted by partition.",
        _one(lambda scrape: sum(host.shard.offsets.count for host in _hosts(scrape))),
    ),
    _gauge(
        "barnabas_group_partitions_loading",
        "Partitions of __consumer_offsets that are loading. Their groups wait.",
        _one(lambda scrape: sum(host.state is State.LOADING for host in _hosts(scrape))),
    ),
    # Transactions
    _gauge(
        "barnabas_transactional_ids",
        "Transactional ids that this broker coordinates, by the state of their transaction.",
        _transactional_ids,
        ("state",),
    ),
    _gauge(
        "barnabas_transaction_partitions_loading",
        "Partitions of __transaction_state that are loading. Their producers wait.",
        _one(lambda scrape: sum(host.state is State.LOADING for host in _txn_hosts(scrape))),
    ),
    # Metadata
    _gauge(
        "barnabas_metadata_offset",
        "The last offset of the metadata log that this broker has applied.",
        _one(lambda scrape: scrape.sources.image().offset),
    ),
    _gauge(
        "barnabas_metadata_lag_records",
        "Committed records of the metadata log that this broker has not applied.",
        _one(_metadata_lag),
    ),
    # The process, by the standard names of Prometheus exporters
    _counter(
        "process_cpu_seconds_total",
        "CPU time used by this process.",
        _one(lambda scrape: scrape.process.cpu_seconds),
    ),
    _gauge(
        "process_resident_memory_bytes",
        "Resident memory of this process.",
        _one(lambda scrape: scrape.process.resident_bytes),
    ),
    _gauge(
        "process_start_time_seconds",
        "When this process started, in seconds since 1970.",
        _one(lambda scrape: scrape.process.started_at_seconds),
    ),
    _gauge("process_open_fds", "Open file descriptors.", _one(lambda scrape: scrape.process.open_files)),
    _gauge(
        "process_max_fds",
        "Maximum number of open file descriptors.",
        _one(lambda scrape: scrape.process.open_files_max),
    ),
)
