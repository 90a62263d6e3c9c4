"""The admin client: the Admin class in admin.py, and one module per family of calls.

call.py has the shared parts: retries, and the outcome of each item of a request. The public types besides
Admin can be imported from here; each is loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin
    from barnabas.client.admin.call import PartlyRefused
    from barnabas.client.admin.cluster import (
        BrokerVersions,
        ClusterDescription,
        ClusterNode,
        LogDir,
        QuorumDescription,
        QuorumEndpoint,
        QuorumReplica,
        ReplicaLog,
    )
    from barnabas.client.admin.configs import (
        ConfigChange,
        ConfigEntry,
        ConfigOperation,
        ConfigSource,
        ConfigSynonym,
        Resource,
        ResourceType,
        broker_resource,
        topic_resource,
    )
    from barnabas.client.admin.features import FeaturesDescription, FeatureUpdate, LevelRange, UpgradeType
    from barnabas.client.admin.group_offsets import CommittedOffset
    from barnabas.client.admin.groups import (
        GroupDescription,
        GroupListing,
        GroupState,
        GroupType,
        MemberDescription,
    )
    from barnabas.client.admin.records import (
        UP_TO_HIGH_WATERMARK,
        ListedOffset,
        OffsetSpec,
        ProducerDescription,
    )
    from barnabas.client.admin.topic_descriptions import PartitionDescription, TopicDescription
    from barnabas.client.admin.topics import CreatedTopic, NewPartitions, NewTopic, TopicListing
    from barnabas.client.admin.transactions import (
        FencedProducer,
        HangingTransaction,
        SearchProgress,
        SearchStage,
        TransactionDescription,
        TransactionListing,
        TransactionState,
    )
    from barnabas.client.settings import AdminSettings
    from barnabas.protocol.messages.acls import AclOperation

_HOMES = {
    "admin.admin": ("Admin",),
    "admin.call": ("PartlyRefused",),
    "admin.cluster": (
        "BrokerVersions",
        "ClusterDescription",
        "ClusterNode",
        "LogDir",
        "QuorumDescription",
        "QuorumEndpoint",
        "QuorumReplica",
        "ReplicaLog",
    ),
    "admin.configs": (
        "ConfigChange",
        "ConfigEntry",
        "ConfigOperation",
        "ConfigSource",
        "ConfigSynonym",
        "Resource",
        "ResourceType",
        "broker_resource",
        "topic_resource",
    ),
    "admin.features": (
        "FeatureUpdate",
        "FeaturesDescription",
        "LevelRange",
        "UpgradeType",
    ),
    "admin.group_offsets": ("CommittedOffset",),
    "admin.groups": (
        "GroupDescription",
        "GroupListing",
        "GroupState",
        "GroupType",
        "MemberDescription",
    ),
    "admin.records": (
        "UP_TO_HIGH_WATERMARK",
        "ListedOffset",
        "OffsetSpec",
        "ProducerDescription",
    ),
    "admin.topic_descriptions": (
        "AclOperation",
        "PartitionDescription",
        "TopicDescription",
    ),
    "admin.topics": (
        "CreatedTopic",
        "NewPartitions",
        "NewTopic",
        "TopicListing",
    ),
    "admin.transactions": (
        "FencedProducer",
        "HangingTransaction",
        "SearchProgress",
        "SearchStage",
        "TransactionDescription",
        "TransactionListing",
        "TransactionState",
    ),
    "settings": ("AdminSettings",),
}
_MODULES = {name: f"barnabas.client.{module}" for module, names in _HOMES.items() for name in names}

__all__ = [
    "UP_TO_HIGH_WATERMARK",
    "AclOperation",
    "Admin",
    "AdminSettings",
    "BrokerVersions",
    "ClusterDescription",
    "ClusterNode",
    "CommittedOffset",
    "ConfigChange",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigSource",
    "ConfigSynonym",
    "CreatedTopic",
    "FeatureUpdate",
    "FeaturesDescription",
    "FencedProducer",
    "GroupDescription",
    "GroupListing",
    "GroupState",
    "GroupType",
    "HangingTransaction",
    "LevelRange",
    "ListedOffset",
    "LogDir",
    "MemberDescription",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "PartitionDescription",
    "PartlyRefused",
    "ProducerDescription",
    "QuorumDescription",
    "QuorumEndpoint",
    "QuorumReplica",
    "ReplicaLog",
    "Resource",
    "ResourceType",
    "SearchProgress",
    "SearchStage",
    "TopicDescription",
    "TopicListing",
    "TransactionDescription",
    "TransactionListing",
    "TransactionState",
    "UpgradeType",
    "broker_resource",
    "topic_resource",
]


def __getattr__(name: str) -> Any:
    """Load names on first use (PEP 562), to keep tools fast to start."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
