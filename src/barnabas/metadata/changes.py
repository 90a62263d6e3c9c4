"""Apply records to an image: changes are collected until finish() makes the next image.

The loader applies committed records, the controller applies the records that it has just decided. apply()
makes no decisions and only rejects records that contradict the image. finish() copies the maps that changed
and shares the others. Topics and brokers are in topic_changes.py and node_changes.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final

from barnabas.base.ids import Uuid
from barnabas.metadata.errors import UnknownMetadataRecord
from barnabas.metadata.image import TOPIC_RESOURCE, ConfigResource, MetadataImage, TopicImage, mutable_copy
from barnabas.metadata.node_changes import BrokerChanges
from barnabas.metadata.topic_changes import TopicChanges
from barnabas.protocol.stored import cluster_access as access
from barnabas.protocol.stored import cluster_nodes as nodes
from barnabas.protocol.stored import cluster_topics as topics


class Changes:
    """The changes that records make to `image`, which itself stays unchanged."""

    def __init__(self, image: MetadataImage) -> None:
        self.image: Final = image
        self._topics = TopicChanges(image)
        self._brokers = BrokerChanges(image)
        self._configs: dict[ConfigResource, dict[str, str]] = {}
        self._features: dict[str, int] = {}
        self._controllers: dict[int, nodes.RegisterControllerRecord] = {}
        self._access: dict[tuple[Any, ...], object | None] = {}
        self._next_producer_id: int | None = None

    @property
    def topics_changed(self) -> set[Uuid]:
        """Topics that were created or altered."""
        return self._topics.changed

    @property
    def topics_deleted(self) -> dict[Uuid, TopicImage]:
        """Deleted topics in their last state."""
        return self._topics.deleted

    @property
    def brokers_changed(self) -> set[int]:
        """Brokers that were registered, unregistered or changed."""
        return self._brokers.changed

    @property
    def configs_changed(self) -> set[ConfigResource]:
        return set(self._configs)

    @property
    def features_changed(self) -> bool:
        return bool(self._features)

    def apply(self, record: object) -> None:
        apply = _APPLY.get(type(record))
        if apply is None:
            raise UnknownMetadataRecord(record)
        apply(self, record)

    def finish(self, offset: int, epoch: int, append_time_ms: int) -> MetadataImage:
        """The image with these changes, as of that offset."""
        made: dict[str, Any] = {"offset": offset, "epoch": epoch, "append_time_ms": append_time_ms}
        if self._topics.touched:
            made["topics"], made["topics_by_id"] = self._topics.finish()
        if self._brokers.changed:
            made["brokers"] = MappingProxyType(self._brokers.finish())
        if self._configs:
            made["configs"] = self._finish_configs()
        if self._features:
            levels = {**self.image.features, **self._features}
            # Level 0 means that the feature is not finalized.
            made["features"] = MappingProxyType({name: level for name, level in levels.items() if level})
        if self._controllers:
            made["controllers"] = MappingProxyType({**self.image.controllers, **self._controllers})
        if self._access:
            entries = {**self.image.access, **self._access}
            made["access"] = MappingProxyType({key: one for key, one in entries.items() if one is not None})
        if self._next_producer_id is not None:
            made["next_producer_id"] = self._next_producer_id
        return replace(self.image, **made)

    def _finish_configs(self) -> Mapping[ConfigResource, Mapping[str, str]]:
        configs = mutable_copy(self.image.configs)
        for resource, values in self._configs.items():
            if values:
                configs[resource] = MappingProxyType(values)
            else:
                configs.pop(resource, None)
        return MappingProxyType(configs)

    def _config(self, record: topics.ConfigRecord) -> None:
        values = self._config_of(ConfigResource(record.resource_type, record.resource_name))
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value

    def _config_of(self, resource: ConfigResource) -> dict[str, str]:
        values = self._configs.get(resource)
        if values is None:
            values = self._configs[resource] = mutable_copy(self.image.config(resource))
        return values

    def _remove_topic(self, record: topics.RemoveTopicRecord) -> None:
        resource = ConfigResource(TOPIC_RESOURCE, self._topics.remove(record))
        # A later topic of the same name must not inherit them.
        if resource in self._configs or resource in self.image.configs:
            self._config_of(resource).clear()

    def _feature(self, record: nodes.FeatureLevelRecord) -> None:
        self._features[record.name] = record.feature_level

    def _controller(self, record: nodes.RegisterControllerRecord) -> None:
        self._controllers[record.controller_id] = record

    def _producer_ids(self, record: topics.ProducerIdsRecord) -> None:
        self._next_producer_id = record.next_producer_id

    def _grant(self, record: object) -> None:
        removed = isinstance(record, access.ClientQuotaRecord) and record.remove
        self._access[access_key(record)] = None if removed else record

    def _revoke(self, record: object) -> None:
        self._access[access_key(record)] = None

    def _nothing(self, record: object) -> None:
        """Ignore a record that does not change the image."""


# Transaction markers are ignored here: the loader handles them, and a reader of a whole log need not.
# ZkMigrationStateRecord is left over from a migration that ended before this release.
_APPLY: Final[dict[type, Callable[[Changes, Any], None]]] = {
    topics.TopicRecord: lambda changes, record: changes._topics.create(record),
    topics.PartitionRecord: lambda changes, record: changes._topics.create_partition(record),
    topics.PartitionChangeRecord: lambda changes, record: changes._topics.alter_partition(record),
    topics.RemoveTopicRecord: Changes._remove_topic,
    topics.ConfigRecord: Changes._config,
    topics.ProducerIdsRecord: Changes._producer_ids,
    nodes.RegisterBrokerRecord: lambda changes, record: changes._brokers.register(record),
    nodes.UnregisterBrokerRecord: lambda changes, record: changes._brokers.unregister(record),
    nodes.BrokerRegistrationChangeRecord: lambda changes, record: changes._brokers.alter(record),
    nodes.FenceBrokerRecord: lambda changes, record: changes._brokers.fence(record),
    nodes.UnfenceBrokerRecord: lambda changes, record: changes._brokers.fence(record),
    nodes.RegisterControllerRecord: Changes._controller,
    nodes.FeatureLevelRecord: Changes._feature,
    nodes.ClearElrRecord: lambda changes, record: changes._topics.clear_elr(record),
    nodes.NoOpRecord: Changes._nothing,
    nodes.ZkMigrationStateRecord: Changes._nothing,
    nodes.BeginTransactionRecord: Changes._nothing,
    nodes.EndTransactionRecord: Changes._nothing,
    nodes.AbortTransactionRecord: Changes._nothing,
    access.AccessControlEntryRecord: Changes._grant,
    access.RemoveAccessControlEntryRecord: Changes._revoke,
    access.ClientQuotaRecord: Changes._grant,
    access.UserScramCredentialRecord: Changes._grant,
    access.RemoveUserScramCredentialRecord: Changes._revoke,
    access.DelegationTokenRecord: Changes._grant,
    access.RemoveDelegationTokenRecord: Changes._revoke,
}


def access_key(record: object) -> tuple[Any, ...]:
    """The key of an access control record, which is the same for the record that removes it.

    No package uses these records yet. The image keeps them, so that a log with them can be read and its
    snapshots are complete.
    """
    match record:
        case access.AccessControlEntryRecord() | access.RemoveAccessControlEntryRecord():
            return "acl", record.id
        case access.ClientQuotaRecord():
            # The name None stands for the default of all entities of the type.
            entity = sorted(((one.entity_type, one.entity_name) for one in record.entity), key=itemgetter(0))
            return "quota", tuple(entity), record.key
        case access.UserScramCredentialRecord() | access.RemoveUserScramCredentialRecord():
            return "scram", record.name, record.mechanism
        case access.DelegationTokenRecord() | access.RemoveDelegationTokenRecord():
            return "token", record.token_id
    raise AssertionError(f"not an access control record: {record!r}")
