"""The image: everything the cluster has decided, as of one offset of the metadata log.

An image never changes. A batch of records makes a new one (changes.py), which shares with the old one all
that stayed the same. So whoever holds an image sees one moment of the cluster, for as long as they hold it.
"""

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from barnabas.base.ids import Uuid
from barnabas.base.values import value
from barnabas.protocol.stored.cluster_nodes import RegisterBrokerRecord, RegisterControllerRecord

NO_LEADER: Final = -1
# metadata.version 30 is Kafka 4.3-IV0.
METADATA_VERSION: Final = "metadata.version"


class ConfigResource(NamedTuple):
    """Whose settings: the type as DescribeConfigs numbers it, and the name; "" stands for all brokers."""

    type: int
    name: str


TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
CLIENT_METRICS_RESOURCE: Final = 16
GROUP_RESOURCE: Final = 32
ALL_BROKERS: Final = ConfigResource(BROKER_RESOURCE, "")


@value(kw_only=True)
class PartitionImage:
    """One partition. Lists are tuples; `directories` is parallel to `replicas`."""

    replicas: tuple[int, ...]
    directories: tuple[Uuid, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader: int
    # 0: recovered; 1: an unclean election was made and is not finished yet.
    leader_recovery_state: int = 0
    leader_epoch: int
    partition_epoch: int


@value
class TopicImage:
    """One topic. Its partitions are numbered from 0 without holes."""

    name: str
    id: Uuid
    partitions: tuple[PartitionImage, ...]


@value(kw_only=True)
class BrokerImage:
    """One registered broker, alive or not. `registration` is what it said of itself."""

    id: int
    epoch: int
    fenced: bool
    in_controlled_shutdown: bool
    registration: RegisterBrokerRecord

    def endpoint(self, listener: str) -> tuple[str, int] | None:
        """Where clients of that listener reach it; None if it does not have this listener."""
        for one in self.registration.end_points:
            if one.name == listener:
                return one.host, one.port
        return None


def _nothing() -> Mapping[Any, Any]:
    return MappingProxyType({})


@value(kw_only=True)
class MetadataImage:
    """`offset` is that of the last record that is in it, -1 if there is none; `epoch` is that record's."""

    offset: int = -1
    epoch: int = -1
    # The time that the leader wrote on the last batch, for snapshots.
    append_time_ms: int = -1
    features: Mapping[str, int] = field(default_factory=_nothing)
    brokers: Mapping[int, BrokerImage] = field(default_factory=_nothing)
    controllers: Mapping[int, RegisterControllerRecord] = field(default_factory=_nothing)
    topics: Mapping[str, TopicImage] = field(default_factory=_nothing)
    topics_by_id: Mapping[Uuid, TopicImage] = field(default_factory=_nothing)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=_nothing)
    # The first producer id that no block has yet.
    next_producer_id: int = 0
    # What later rooms will read: access control, credentials, quotas, tokens. By what identifies them.
    access: Mapping[tuple[Any, ...], object] = field(default_factory=_nothing)

    @property
    def metadata_version(self) -> int:
        return self.features.get(METADATA_VERSION, 0)

    def config(self, resource: ConfigResource) -> Mapping[str, str]:
        """What is set for exactly this resource."""
        return self.configs.get(resource, _NO_CONFIG)


_NO_CONFIG: Final[Mapping[str, str]] = MappingProxyType({})
EMPTY_IMAGE: Final = MetadataImage()
