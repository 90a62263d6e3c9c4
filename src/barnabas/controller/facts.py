"""The input of decisions besides image and request."""

from collections.abc import Callable, Mapping
from dataclasses import field
from random import Random
from types import MappingProxyType
from typing import Final, NamedTuple

from barnabas.base.settings import InvalidSetting
from barnabas.base.values import value
from barnabas.controller.sessions import Sessions
from barnabas.metadata.image import ConfigResource


class FeatureRange(NamedTuple):
    """The levels of a feature that a node supports."""

    least: int
    most: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.least <= level <= self.most


METADATA_VERSION_LATEST: Final = 30
ELR_FEATURE: Final = "eligible.leader.replicas.version"
KRAFT_FEATURE: Final = "kraft.version"

# As on a Kafka 4.3 node, except for kraft.version: only static voters are supported.
SUPPORTED_FEATURES: Final[Mapping[str, FeatureRange]] = MappingProxyType(
    {
        ELR_FEATURE: FeatureRange(0, 1),
        "group.version": FeatureRange(0, 1),
        KRAFT_FEATURE: FeatureRange(0, 0),
        "metadata.version": FeatureRange(7, METADATA_VERSION_LATEST),
        "share.version": FeatureRange(0, 1),
        "streams.version": FeatureRange(0, 1),
        "transaction.version": FeatureRange(0, 2),
    }
)


def _no_broker_config(configs: Mapping[str, str], broker: str) -> None:
    """The default validator: without a real one, reject every setting."""
    for name, text in configs.items():
        raise InvalidSetting(name, text, f"cannot be changed on broker {broker!r}")


def _no_other_config(resource: ConfigResource, configs: Mapping[str, str]) -> None:
    for name, text in configs.items():
        raise InvalidSetting(name, text, f"cannot be set for {resource.name!r}")


@value(kw_only=True)
class ControllerSettings:
    """The controller's settings. Times are in milliseconds."""

    node_id: int
    cluster_id: str
    voters: tuple[int, ...]
    num_partitions: int = 1
    default_replication_factor: int = 1
    delete_topic_enable: bool = True
    # Settings from this node's file and command line, as text: the third source of topic settings.
    static_config: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    # Validators, which raise InvalidSetting. This one gets the broker id as text, "" for all brokers.
    validate_broker_config: Callable[[Mapping[str, str], str], None] = _no_broker_config
    # For groups and client metrics.
    validate_other_config: Callable[[ConfigResource, Mapping[str, str]], None] = _no_other_config
    # Broker settings of type list, with their defaults; only these support APPEND and SUBTRACT.
    broker_lists: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    supported_features: Mapping[str, FeatureRange] = field(default_factory=lambda: SUPPORTED_FEATURES)
    session_timeout_ms: int = 9_000
    max_idle_interval_ms: int = 500
    auto_leader_rebalance: bool = True
    leader_imbalance_check_ms: int = 300_000
    unclean_election_check_ms: int = 300_000


class Facts(NamedTuple):
    """The circumstances of a decision."""

    settings: ControllerSettings
    rng: Random
    # The offset of the first record of this decision.
    next_offset: int
    # Monotonic time.
    now_ms: int
    sessions: Sessions
