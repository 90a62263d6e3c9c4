"""The admin client: topics, settings, offsets, groups, transactions, log directories, and the cluster itself.

    async with Admin(bootstrap_servers="localhost:9092") as admin:
        await admin.create_topic("orders", partitions=3, settings={"retention.ms": 1000})

Every call retries retriable errors until `timeout_ms` (default: default.api.timeout.ms). A call about one
item raises Refused if the broker rejects it. A call about several items tries all of them, and raises
PartlyRefused if any was rejected: `refused` holds the errors by name, `done` the results of the others.
BrokerUnavailable, ConnectionLost and RequestTimedOut mean that there was no response in time,
UnsupportedByBroker that the broker is too old. A topic is given by name (str) or, where the type is Topic, by
id (Uuid). Result types are declared in the module of their family. The calls about groups and transactions
import their modules late: most tools do not use them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from barnabas.base.ids import TopicPartition
from barnabas.client.admin import cluster, configs, features, records, topic_descriptions, topics
from barnabas.client.admin.call import (
    Call,
    Outcome,
    TopicPartitionLike,
    all_of,
    all_of_group,
    only,
)
from barnabas.client.admin.cluster import (
    BrokerVersions,
    ClusterDescription,
    ElectionType,
    EndpointType,
    LogDir,
    QuorumDescription,
)
from barnabas.client.admin.configs import ConfigChange, ConfigEntry, Resource, ResourceType, changes_of
from barnabas.client.admin.features import FeaturesDescription, FeatureUpdate
from barnabas.client.admin.records import IsolationLevel, ListedOffset, ProducerDescription
from barnabas.client.admin.topic_descriptions import PAGE_PARTITIONS, TopicDescription
from barnabas.client.admin.topics import DEFAULT, CreatedTopic, NewPartitions, NewTopic, Topic, TopicListing
from barnabas.client.cluster import Cluster
from barnabas.client.ports import ClientPorts
from barnabas.client.settings import AdminSettings, parse_settings_of

if TYPE_CHECKING:
    from barnabas.client.admin.group_offsets import CommittedOffset
    from barnabas.client.admin.groups import GroupDescription, GroupListing, GroupState, GroupType
    from barnabas.client.admin.transactions import (
        FencedProducer,
        HangingTransaction,
        SearchProgress,
        TransactionDescription,
        TransactionListing,
        TransactionState,
    )
    from barnabas.client.producer.transaction import OpenTransaction


class Admin:
    """Started by start() or `async with`. Calls may run concurrently."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        /,
        *,
        ports: ClientPorts | None = None,
        **named: object,
    ) -> None:
        self.settings = parse_settings_of(AdminSettings, settings, named)
        self.cluster = Cluster(self.settings, ports)

    async def start(self) -> None:
        await self.cluster.start()

    async def close(self) -> None:
        """Close all connections. Pending calls raise Closed."""
        await self._disconnect()

    async def _disconnect(self) -> None:
        await self.cluster.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _call(self, timeout_ms: float | None) -> Call:
        return Call(self.cluster, timeout_ms=timeout_ms, retries=self.settings.retries)

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
        return only(await topics.create_topics(self._call(timeout_ms), [new], validate_only=validate_only))

    async def create_topics(
        self, new: Iterable[NewTopic], *, validate_only: bool = False, timeout_ms: float | None = None
    ) -> dict[str, CreatedTopic]:
        return all_of(await topics.create_topics(self._call(timeout_ms), new, validate_only=validate_only))

    async def delete_topic(self, topic: Topic, *, timeout_ms: float | None = None) -> None:
        only(await topics.delete_topics(self._call(timeout_ms), [topic]))

    async def delete_topics(self, wanted: Iterable[Topic], *, timeout_ms: float | None = None) -> None:
        all_of(await topics.delete_topics(self._call(timeout_ms), wanted))

    async def list_topics(
        self, *, internal: bool = False, timeout_ms: float | None = None
    ) -> dict[str, TopicListing]:
        """List topics, sorted by name; with `internal`, also Kafka's internal topics."""
        return await topics.list_topics(self._call(timeout_ms), internal=internal)

    async def describe_topic(
        self, topic: Topic, *, operations: bool = False, timeout_ms: float | None = None
    ) -> TopicDescription:
        call = self._call(timeout_ms)
        return only(
            await topic_descriptions.describe_topics(
                call, [topic], operations=operations, page_partitions=PAGE_PARTITIONS
            )
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
            await topic_descriptions.describe_topics(
                call, wanted, operations=operations, page_partitions=page_partitions
            )
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
            await configs.describe_configs(
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
            await configs.describe_configs(call, wanted, synonyms=synonyms, documentation=documentation)
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
        only(await configs.alter_configs(call, {resource: changes}, validate_only=validate_only))

    async def alter_configs(
        self,
        changes: Mapping[Resource, Sequence[ConfigChange]],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Like alter_config(), for several resources."""
        all_of(await configs.alter_configs(self._call(timeout_ms), changes, validate_only=validate_only))

    async def list_config_resources(
        self, types: Collection[ResourceType] = (), *, timeout_ms: float | None = None
    ) -> list[Resource]:
        """List the resources that have configs, of these types (default: all)."""
        return await configs.list_resources(self._call(timeout_ms), types)

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
        return all_of(await records.list_offsets(self._call(timeout_ms), specs, isolation=isolation))

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

    # Groups

    async def list_groups(
        self,
        *,
        states: "Collection[GroupState]" = (),
        types: "Collection[GroupType]" = (),
        timeout_ms: float | None = None,
    ) -> "dict[str, GroupListing]":
        """List groups, sorted by name, in these states and of these types (default: all)."""
        from barnabas.client.admin import groups

        return await groups.list_groups(self._call(timeout_ms), states=states, types=types)

    async def describe_group(
        self, group: str, *, operations: bool = False, timeout_ms: float | None = None
    ) -> "GroupDescription":
        """Describe a group of either protocol. Refused with GROUP_ID_NOT_FOUND if it does not exist."""
        from barnabas.client.admin import groups

        call = self._call(timeout_ms)
        return only(await groups.describe_groups(call, [group], operations=operations))

    async def describe_groups(
        self, wanted: Iterable[str], *, operations: bool = False, timeout_ms: float | None = None
    ) -> "dict[str, GroupDescription]":
        from barnabas.client.admin import groups

        call = self._call(timeout_ms)
        return all_of(await groups.describe_groups(call, wanted, operations=operations))

    async def delete_group(self, group: str, *, timeout_ms: float | None = None) -> None:
        """Delete a group and its offsets. It must have no members."""
        from barnabas.client.admin import groups

        only(await groups.delete_groups(self._call(timeout_ms), [group]))

    async def delete_groups(self, wanted: Iterable[str], *, timeout_ms: float | None = None) -> None:
        from barnabas.client.admin import groups

        all_of(await groups.delete_groups(self._call(timeout_ms), wanted))

    # Offsets of groups

    async def list_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartitionLike] | None = None,
        *,
        require_stable: bool = False,
        timeout_ms: float | None = None,
    ) -> "dict[TopicPartition, CommittedOffset | None]":
        """Return committed offsets (default: all partitions); None for a partition without one.

        With `require_stable`, wait for open transactions that contain offsets of the group.
        """
        from barnabas.client.admin import group_offsets

        call, wanted = self._call(timeout_ms), {group: partitions}
        return only(await group_offsets.fetch_offsets(call, wanted, require_stable=require_stable))

    async def list_group_offsets_of(
        self,
        wanted: Iterable[str] | Mapping[str, Iterable[TopicPartitionLike] | None],
        *,
        require_stable: bool = False,
        timeout_ms: float | None = None,
    ) -> "dict[str, dict[TopicPartition, CommittedOffset | None]]":
        """Like list_group_offsets(), for several groups; a mapping gives the partitions of each."""
        from barnabas.client.admin import group_offsets

        chosen = dict(wanted) if isinstance(wanted, Mapping) else dict.fromkeys(wanted)
        call = self._call(timeout_ms)
        return all_of(await group_offsets.fetch_offsets(call, chosen, require_stable=require_stable))

    async def alter_group_offsets(
        self,
        group: str,
        offsets: "Mapping[TopicPartition, int | CommittedOffset]",
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Set committed offsets of a group without members. A missing group is created."""
        from barnabas.client.admin import group_offsets
        from barnabas.client.group.offsets import check_offset

        chosen = {
            TopicPartition(*tp): group_offsets.CommittedOffset(offset=each) if isinstance(each, int) else each
            for tp, each in offsets.items()
        }
        for tp, each in chosen.items():
            check_offset(tp, each.offset)
        all_of_group(group, await group_offsets.commit_offsets(self._call(timeout_ms), group, chosen))

    async def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartitionLike], *, timeout_ms: float | None = None
    ) -> None:
        """Delete committed offsets of topics that no member subscribes to. Missing offsets are no error."""
        from barnabas.client.admin import group_offsets

        tps = [TopicPartition(*tp) for tp in partitions]
        all_of_group(group, await group_offsets.delete_offsets(self._call(timeout_ms), group, tps))

    # Members of groups

    async def remove_group_members(
        self,
        group: str,
        *,
        members: Iterable[str] = (),
        instances: Iterable[str] = (),
        reason: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Remove members by member id, static ones by group.instance.id. They may join again."""
        from barnabas.client.admin.groups import MemberKey, remove_members

        keys = [MemberKey(each) for each in members]
        keys += [MemberKey(instance_id=each) for each in instances]
        all_of_group(group, await remove_members(self._call(timeout_ms), group, keys, reason=reason))

    # Transactions

    async def list_transactions(
        self,
        *,
        states: "Collection[TransactionState]" = (),
        producer_ids: Collection[int] = (),
        longer_than_ms: int | None = None,
        pattern: str | None = None,
        timeout_ms: float | None = None,
    ) -> "dict[str, TransactionListing]":
        """List transactions, sorted by transactional id, filtered by state, producer id, minimum duration and
        a regular expression (RE2) that must match the full id."""
        from barnabas.client.admin import transactions

        return await transactions.list_transactions(
            self._call(timeout_ms),
            states=states,
            producer_ids=producer_ids,
            longer_than_ms=longer_than_ms,
            pattern=pattern,
        )

    async def describe_transaction(
        self, transactional_id: str, *, timeout_ms: float | None = None
    ) -> "TransactionDescription":
        """Describe a transaction. Refused with TRANSACTIONAL_ID_NOT_FOUND if the id is unknown."""
        from barnabas.client.admin import transactions

        return only(await transactions.describe_transactions(self._call(timeout_ms), [transactional_id]))

    async def describe_transactions(
        self, ids: Iterable[str], *, timeout_ms: float | None = None
    ) -> "dict[str, TransactionDescription]":
        from barnabas.client.admin import transactions

        return all_of(await transactions.describe_transactions(self._call(timeout_ms), ids))

    async def find_hanging(
        self,
        topics: Iterable[str] | None = None,
        *,
        partitions: Iterable[TopicPartitionLike] | None = None,
        broker: int | None = None,
        max_timeout_ms: int | None = None,
        tell: "Callable[[SearchProgress], object] | None" = None,
        timeout_ms: float | None = None,
    ) -> "list[HangingTransaction]":
        """Find hanging transactions: open in a partition, but unknown to every coordinator.

        Search these topics and partitions (default: all). With `broker`, search its replicas on that broker.
        Transactions younger than `max_timeout_ms` (default: 15 minutes) are skipped. `tell` is called with
        the progress, and `timeout_ms` applies to each step.
        """
        from barnabas.client.admin.transactions import MAX_TIMEOUT_MS, HangingSearch

        search = HangingSearch(
            lambda: self._call(timeout_ms),
            broker=broker,
            max_timeout_ms=MAX_TIMEOUT_MS if max_timeout_ms is None else max_timeout_ms,
            tell=tell,
        )
        tps = None if partitions is None else [TopicPartition(*tp) for tp in partitions]
        return await search.run(topics, tps)

    async def end_transactions(
        self, opened: "Iterable[OpenTransaction]", *, commit: bool, timeout_ms: float | None = None
    ) -> None:
        """Commit or abort transactions that producers handed over; the producers need not exist any more.

        Each transaction is atomic, not all of them together. All are tried, and the first error is raised
        with notes about the others: ProducerFenced if a newer producer uses the id, TransactionNotOpen if it
        was already ended differently, TransactionsFailed if the coordinator rejects the request, and
        OutcomeUnknown without a response in time. The call may be repeated, also for transactions that it
        has already ended.
        """
        from barnabas.client.admin import end_transactions

        call = self._call(timeout_ms)
        await end_transactions.end_all(self.cluster, opened, commit=commit, deadline=call.deadline)

    async def abort_transaction(
        self,
        partition: TopicPartitionLike,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        timeout_ms: float | None = None,
    ) -> None:
        """Abort a hanging transaction in one partition, bypassing its coordinator.

        Use the values from find_hanging(), and coordinator epoch 0 if it has none.
        """
        from barnabas.client.admin import transactions

        only(
            await transactions.abort_transaction(
                self._call(timeout_ms),
                TopicPartition(*partition),
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=coordinator_epoch,
            )
        )

    async def fence_producer(
        self,
        transactional_id: str,
        *,
        transaction_timeout_ms: int | None = None,
        timeout_ms: float | None = None,
    ) -> "FencedProducer":
        """Fence all producers of a transactional id and abort its open transaction.

        The id keeps `transaction_timeout_ms` (default, as in Kafka's client: request.timeout.ms) until a
        producer sets another.
        """
        return only(await self._fence([transactional_id], transaction_timeout_ms, timeout_ms))

    async def fence_producers(
        self,
        ids: Iterable[str],
        *,
        transaction_timeout_ms: int | None = None,
        timeout_ms: float | None = None,
    ) -> "dict[str, FencedProducer]":
        """Like fence_producer(), for several ids."""
        return all_of(await self._fence(ids, transaction_timeout_ms, timeout_ms))

    async def _fence(
        self, ids: Iterable[str], transaction_timeout_ms: int | None, timeout_ms: float | None
    ) -> "dict[str, Outcome[FencedProducer]]":
        from barnabas.client.admin import transactions

        if transaction_timeout_ms is None:
            transaction_timeout_ms = self.settings.request_timeout_ms
        return await transactions.fence_producers(
            self._call(timeout_ms), ids, transaction_timeout_ms=transaction_timeout_ms
        )

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
        return await cluster.describe_cluster(
            self._call(timeout_ms), endpoints=endpoints, fenced=fenced, operations=operations
        )

    async def api_versions(self, *, timeout_ms: float | None = None) -> dict[int, BrokerVersions]:
        """Return the API versions of each broker, by id; for an unreachable broker, the error."""
        return await cluster.api_versions(self._call(timeout_ms))

    async def unregister_broker(self, broker: int, *, timeout_ms: float | None = None) -> None:
        """Unregister a broker that will not come back."""
        await cluster.unregister_broker(self._call(timeout_ms), broker)

    async def describe_features(
        self, *, broker: int | None = None, timeout_ms: float | None = None
    ) -> FeaturesDescription:
        return await features.describe_features(self._call(timeout_ms), broker)

    async def update_features(
        self,
        updates: Mapping[str, FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Update features, all or none."""
        await features.update_features(self._call(timeout_ms), updates, validate_only=validate_only)

    async def describe_quorum(self, *, timeout_ms: float | None = None) -> QuorumDescription:
        return await cluster.describe_quorum(self._call(timeout_ms))

    async def describe_log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        *,
        partitions: Iterable[TopicPartitionLike] | None = None,
        timeout_ms: float | None = None,
    ) -> dict[int, dict[str, LogDir]]:
        """Return log directories by broker and path (default: all brokers and partitions)."""
        tps = None if partitions is None else [TopicPartition(*tp) for tp in partitions]
        return all_of(await cluster.describe_log_dirs(self._call(timeout_ms), brokers, tps))

    async def elect_leaders(
        self,
        election: ElectionType,
        partitions: Iterable[TopicPartitionLike] | None = None,
        *,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, bool]:
        """Elect leaders (default: all partitions). False where no election was needed."""
        tps = None if partitions is None else [TopicPartition(*tp) for tp in partitions]
        return all_of(await cluster.elect_leaders(self._call(timeout_ms), election, tps))
