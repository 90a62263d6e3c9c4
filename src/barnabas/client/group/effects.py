"""Effects of a membership state machine. session.py carries them out and reports the results."""

from collections.abc import Mapping
from typing import TypeAlias

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.base.values import value
from barnabas.client.group.errors import GroupFailed
from barnabas.client.group.subscription import Subscription
from barnabas.protocol.messages.classic_groups import JoinGroupRequest, SyncGroupRequest


@value
class TakeAway:
    """Revoke: wait for readers to poll, commit, call on_revoked, drop the partitions. Then took()."""

    tps: frozenset[TopicPartition]


@value
class Give:
    """Assign `tps`, of which `added` are new, and call on_assigned. Then gave()."""

    tps: frozenset[TopicPartition]
    added: frozenset[TopicPartition]


@value
class SendJoin:
    """Send JoinGroup. Then join_answered(), or join_lost() without a response."""

    request: JoinGroupRequest


@value
class Divide:
    """Compute the assignment as the leader. Then divided()."""

    assignor: str
    members: Mapping[str, Subscription]


@value
class SendSync:
    """Send SyncGroup. Then sync_answered(), or sync_lost() without a response."""

    request: SyncGroupRequest


@value
class Resolve:
    """Look up the names of these topic ids. Then resolved()."""

    topic_ids: frozenset[Uuid]


@value
class Stay:
    """Wait for the next event."""


@value
class Fail:
    """Report a fatal error to the reader."""

    error: GroupFailed


Effect: TypeAlias = TakeAway | Give | SendJoin | Divide | SendSync | Resolve | Stay | Fail
