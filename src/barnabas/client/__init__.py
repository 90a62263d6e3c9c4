"""The asyncio client: Admin, Producer and Consumer. blocking/ has blocking versions of them.

Public names are imported from here and loaded on first use (PEP 562): a tool that lists topics does not load
the producer.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.base.ids import TopicPartition
    from barnabas.client.admin.admin import Admin
    from barnabas.client.consumer.consumer import Consumer
    from barnabas.client.consumer.message import EndOfPartition, Message
    from barnabas.client.errors import (
        BrokerUnavailable,
        ClientError,
        Closed,
        ConnectionLost,
        NotKafka,
        Refused,
        RequestTimedOut,
        SomeRefused,
        UnknownTopic,
        UnsupportedByBroker,
    )
    from barnabas.client.group.errors import (
        AssignedOtherwise,
        CallbackFailed,
        CommitFailed,
        FencedInstance,
        GroupFailed,
        InCallback,
        NoGroup,
    )
    from barnabas.client.group.offsets import Committer, OffsetAndMetadata
    from barnabas.client.producer.delivery import Delivered, Delivery
    from barnabas.client.producer.producer import Producer
    from barnabas.client.producer.transaction import OpenTransaction, PreparedTransaction
    from barnabas.client.producer.transaction_errors import (
        MustAbort,
        NoTransaction,
        OutcomeUnknown,
        ProducerFenced,
        Remedy,
        TransactionAborted,
        TransactionError,
        TransactionNotOpen,
        TransactionsFailed,
        TransactionTimedOut,
        TwoPhaseCommitOff,
    )

_HOMES = {
    "barnabas.base.ids": ("TopicPartition",),
    "barnabas.client.admin.admin": ("Admin",),
    "barnabas.client.consumer.consumer": ("Consumer",),
    "barnabas.client.consumer.message": ("EndOfPartition", "Message"),
    "barnabas.client.errors": (
        "BrokerUnavailable",
        "ClientError",
        "Closed",
        "ConnectionLost",
        "NotKafka",
        "Refused",
        "RequestTimedOut",
        "SomeRefused",
        "UnknownTopic",
        "UnsupportedByBroker",
    ),
    "barnabas.client.group.errors": (
        "AssignedOtherwise",
        "CallbackFailed",
        "CommitFailed",
        "FencedInstance",
        "GroupFailed",
        "InCallback",
        "NoGroup",
    ),
    "barnabas.client.group.offsets": ("Committer", "OffsetAndMetadata"),
    "barnabas.client.producer.delivery": ("Delivered", "Delivery"),
    "barnabas.client.producer.producer": ("Producer",),
    "barnabas.client.producer.transaction": ("OpenTransaction", "PreparedTransaction"),
    "barnabas.client.producer.transaction_errors": (
        "MustAbort",
        "NoTransaction",
        "OutcomeUnknown",
        "ProducerFenced",
        "Remedy",
        "TransactionAborted",
        "TransactionError",
        "TransactionNotOpen",
        "TransactionTimedOut",
        "TransactionsFailed",
        "TwoPhaseCommitOff",
    ),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Admin",
    "AssignedOtherwise",
    "BrokerUnavailable",
    "CallbackFailed",
    "ClientError",
    "Closed",
    "CommitFailed",
    "Committer",
    "ConnectionLost",
    "Consumer",
    "Delivered",
    "Delivery",
    "EndOfPartition",
    "FencedInstance",
    "GroupFailed",
    "InCallback",
    "Message",
    "MustAbort",
    "NoGroup",
    "NoTransaction",
    "NotKafka",
    "OffsetAndMetadata",
    "OpenTransaction",
    "OutcomeUnknown",
    "PreparedTransaction",
    "Producer",
    "ProducerFenced",
    "Refused",
    "Remedy",
    "RequestTimedOut",
    "SomeRefused",
    "TopicPartition",
    "TransactionAborted",
    "TransactionError",
    "TransactionNotOpen",
    "TransactionTimedOut",
    "TransactionsFailed",
    "TwoPhaseCommitOff",
    "UnknownTopic",
    "UnsupportedByBroker",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
