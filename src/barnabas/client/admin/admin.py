"""The admin client: topics, settings, offsets, groups, transactions, log directories, and the cluster itself.

    async with Admin(bootstrap_servers="localhost:9092") as admin:
        await admin.create_topic("orders", partitions=3, settings={"retention.ms": 1000})

Every call retries retriable errors until `timeout_ms` (default: default.api.timeout.ms). A call about one
item raises Refused if the broker rejects it. A call about several items tries all of them, and raises
PartlyRefused if any was rejected: `refused` holds the errors by name, `done` the results of the others.
BrokerUnavailable, ConnectionLost and RequestTimedOut mean that there was no response in time,
UnsupportedByBroker that the broker is too old. A topic is given by name (str) or, where the type is Topic, by
id (Uuid). Result types are declared in the module of their family.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from barnabas.base.ids import TopicPartition
from barnabas.client.admin import (
    cluster,
    config_calls,
    describing,
    elections,
    features,
    log_dirs,
    offsets,
    quorum,
    records,
    topics,
)
from barnabas.client.admin.call import all_of, only
from barnabas.client.admin.cluster import BrokerVersions, ClusterDescription, EndpointType
from barnabas.client.admin.configs import (
    ConfigChange,
    ConfigEntry,
    Resource,
    ResourceType,
    changes_of,
)
from barnabas.client.admin.describing import PAGE_PARTITIONS, TopicDescription
from barnabas.client.admin.elections import ElectionType
from barnabas.client.admin.features import FeaturesDescription, FeatureUpdate
from barnabas.client.admin.group_calls import GroupCalls, TopicPartitionLike
from barnabas.client.admin.log_dirs import LogDir
from barnabas.client.admin.offsets import IsolationLevel, ListedOffset
from barnabas.client.admin.quorum import QuorumDescription
from barnabas.client.admin.records import ProducerDescription
from barnabas.client.admin.topics import (
    DEFAULT,
    CreatedTopic,
    NewPartitions,
    NewTopic,
    Topic,
    TopicListing,
)
from barnabas.client.admin.transactions_calls import TransactionCalls


class Admin(GroupCalls, TransactionCalls):
    """Started by start() or `async with`. Calls may run concurrently. Calls about groups are in
    group_calls.py, calls about transactions in transactions_calls.py."""

    # Topics

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = DEFAULT,
        replication_factor: int = DEFAULT,
        assignment: Mapping[int, Sequence[int]] | None = None,
        settings: Mapping[str, object] | None = None,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> CreatedTopic:
        """Create a topic. The broker chooses omitted values; `assignment` maps partitions to brokers."""
        new = NewTopic(
            name=name,
            partitions=partitions,
            replication_factor=replication_factor,
            assignment=assignment,
            settings=settings or {},
        )
        return only(await topics.create(self._call(timeout_ms), [new], validate_only=validate_only))

    async def create_topics(
        self, new: Iterable[NewTopic], *, validate_only: bool = False, timeout_ms: float | None = None
    ) -> dict[str, CreatedTopic]:
        return all_of(await topics.create(self._call(timeout_ms), new, validate_only=validate_only))

    async def delete_topic(self, topic: Topic, *, timeout_ms: float | None = None) -> None:
        only(await topics.delete(self._call(timeout_ms), [topic]))

    async def delete_topics(self, wanted: Iterable[Topic], *, timeout_ms: float | None = None) -> None:
        all_of(await topics.delete(self._call(timeout_ms), wanted))

    async def list_topics(
        self, *, internal: bool = False, timeout_ms: float | None = None
    ) -> dict[str, TopicListing]:
        """List topics, sorted by name; with `internal`, also Kafka's internal topics."""
        return await topics.list_all(self._call(timeout_ms), internal=internal)

    async def describe_topic(
        self, topic: Topic, *, operations: bool = False, timeout_ms: float | None = None
    ) -> TopicDescription:
        call = self._call(timeout_ms)
        return only(
            await describing.describe(call, [topic], operations=operations, page_partitions=PAGE_PARTITIONS)
        )

    async def describe_topics(
        self,
        wanted: Iterable[Topic] | None = None,
        *,
        operations: bool = False,
        page_partitions: int = PAGE_PARTITIONS,
        timeout_ms: float | None = None,
    ) -> dict[Topic, TopicDescription]:
        """Describe topics (default: all). `page_partitions` limits the partitions per response."""
        call = self._call(timeout_ms)
        return all_of(
            await describing.describe(call, wanted, operations=operations, page_partitions=page_partitions)
        )

    async def create_partitions(
        self,
        topic: str,
        total: int,
        *,
        assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Increase the partition count to `total`. `assignments` are the brokers of each new partition."""
        new = {topic: NewPartitions(total=total, assignments=assignments)}
        only(await topics.create_partitions(self._call(timeout_ms), new, validate_only=validate_only))

    async def create_partitions_of(
        self,
        wanted: Mapping[str, NewPartitions],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Like create_partitions(), for several topics."""
        call = self._call(timeout_ms)
        all_of(await topics.create_partitions(call, wanted, validate_only=validate_only))

    # Settings

    async def describe_config(
        self,
        resource: Resource,
        names: Collection[str] | None = None,
        *,
        synonyms: bool = False,
        documentation: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, ConfigEntry]:
        """Return the configs of topic_resource("orders"), broker_resource(1), ... (default: all configs)."""
        call = self._call(timeout_ms)
        return only(
            await config_calls.describe(
                call, {resource: names}, synonyms=synonyms, documentation=documentation
            )
        )

    async def describe_configs(
        self,
        resources: Iterable[Resource] | Mapping[Resource, Collection[str] | None],
        *,
        synonyms: bool = False,
        documentation: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[Resource, dict[str, ConfigEntry]]:
        """Like describe_config(), for several resources; a mapping gives the config names of each."""
        wanted = dict(resources) if isinstance(resources, Mapping) else dict.fromkeys(resources)
        call = self._call(timeout_ms)
        return all_of(
            await config_calls.describe(call, wanted, synonyms=synonyms, documentation=documentation)
        )

    async def alter_config(
        self,
        resource: Resource,
        set_to: Mapping[str, object] | None = None,
        *,
        delete: Iterable[str] = (),
        append: Mapping[str, object] | None = None,
        subtract: Mapping[str, object] | None = None,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Change some configs and keep the others. `append` and `subtract` are for lists."""
        changes = changes_of(set_to=set_to or {}, delete=delete, append=append or {}, subtract=subtract or {})
        call = self._call(timeout_ms)
        only(await config_calls.alter(call, {resource: changes}, validate_only=validate_only))

    async def alter_configs(
        self,
        changes: Mapping[Resource, Sequence[ConfigChange]],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Like alter_config(), for several resources."""
        all_of(await config_calls.alter(self._call(timeout_ms), changes, validate_only=validate_only))

    async def list_config_resources(
        self, types: Collection[ResourceType] = (), *, timeout_ms: float | None = None
    ) -> list[Resource]:
        """List the resources that have configs, of these types (default: all)."""
        return await config_calls.list_resources(self._call(timeout_ms), types)

    # Offsets and records

    async def list_offsets(
        self,
        wanted: Mapping[TopicPartition, int],
        *,
        isolation: IsolationLevel = "read_uncommitted",
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, ListedOffset]:
        """Look up the offset of an OffsetSpec, or of a timestamp in milliseconds, in each partition."""
        specs = {TopicPartition(*tp): spec for tp, spec in wanted.items()}
        return all_of(await offsets.list_offsets(self._call(timeout_ms), specs, isolation=isolation))

    async def first_record_times(
        self, wanted: Mapping[TopicPartition, int], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, int | None]:
        """Return the timestamp (ms, -1: none) of the first record from an offset on; None: no record."""
        # Imported late: only this call needs the record decoder.
        from barnabas.client.admin import record_times

        from_offsets = {TopicPartition(*tp): offset for tp, offset in wanted.items()}
        return all_of(await record_times.first_times(self._call(timeout_ms), from_offsets))

    async def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """Delete records before an offset or UP_TO_HIGH_WATERMARK, and return the new start offsets."""
        wanted = {TopicPartition(*tp): offset for tp, offset in before.items()}
        return all_of(await records.delete_records(self._call(timeout_ms), wanted))

    async def describe_producers(
        self,
        tps: Iterable[TopicPartitionLike],
        *,
        broker: int | None = None,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, tuple[ProducerDescription, ...]]:
        """Return the producers of each partition, as known by its leader or by `broker`."""
        wanted = [TopicPartition(*tp) for tp in tps]
        return all_of(await records.describe_producers(self._call(timeout_ms), wanted, broker=broker))

    # The cluster

    async def describe_cluster(
        self,
        *,
        endpoints: EndpointType = "brokers",
        fenced: bool = False,
        operations: bool = False,
        timeout_ms: float | None = None,
    ) -> ClusterDescription:
        """Describe the cluster and its live brokers; with `fenced`, also its fenced brokers."""
        return await cluster.describe(
            self._call(timeout_ms), endpoints=endpoints, fenced=fenced, operations=operations
        )

    async def api_versions(self, *, timeout_ms: float | None = None) -> dict[int, BrokerVersions]:
        """Return the API versions of each broker, by id; for an unreachable broker, the error."""
        return await cluster.api_versions(self._call(timeout_ms))

    async def unregister_broker(self, broker: int, *, timeout_ms: float | None = None) -> None:
        """Unregister a broker that will not come back."""
        await cluster.unregister(self._call(timeout_ms), broker)

    async def describe_features(
        self, *, broker: int | None = None, timeout_ms: float | None = None
    ) -> FeaturesDescription:
        return await features.describe(self._call(timeout_ms), broker)

    async def update_features(
        self,
        updates: Mapping[str, FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Update features, all or none."""
        await features.update(self._call(timeout_ms), updates, validate_only=validate_only)

    async def describe_quorum(self, *, timeout_ms: float | None = None) -> QuorumDescription:
        return await quorum.describe(self._call(timeout_ms))

    async def describe_log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        *,
        partitions: Iterable[TopicPartitionLike] | None = None,
        timeout_ms: float | None = None,
    ) -> dict[int, dict[str, LogDir]]:
        """Return log directories by broker and path (default: all brokers and partitions)."""
        tps = None if partitions is None else [TopicPartition(*tp) for tp in partitions]
        return all_of(await log_dirs.describe(self._call(timeout_ms), brokers, tps))

    async def elect_leaders(
        self,
        election: ElectionType,
        partitions: Iterable[TopicPartitionLike] | None = None,
        *,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, bool]:
        """Elect leaders (default: all partitions). False where no election was needed."""
        tps = None if partitions is None else [TopicPartition(*tp) for tp in partitions]
        return all_of(await elections.elect(self._call(timeout_ms), election, tps))
