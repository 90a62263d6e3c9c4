"""Effects of a membership state machine. session.py carries them out and reports the results."""

from collections.abc import Mapping
from typing import TypeAlias

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.base.values import value
from barnabas.client.group.errors import GroupFailed
from barnabas.client.group.subscription import Subscription
from barnabas.protocol.messages.classic_groups import JoinGroupRequest, SyncGroupRequest


@value
class Revoke:
    """Wait for readers to poll, commit, call on_revoked, drop `tps`. Then partitions_revoked()."""

    tps: frozenset[TopicPartition]


@value
class Assign:
    """Assign `tps`, of which `added` are new, and call on_assigned. Then partitions_assigned()."""

    tps: frozenset[TopicPartition]
    added: frozenset[TopicPartition]


@value
class SendJoin:
    """Send JoinGroup. Then join_answered(), or join_lost() without a response."""

    request: JoinGroupRequest


@value
class ComputeAssignment:
    """Compute the assignment as the leader. Then assignment_computed()."""

    assignor: str
    members: Mapping[str, Subscription]


@value
class SendSync:
    """Send SyncGroup. Then sync_answered(), or sync_lost() without a response."""

    request: SyncGroupRequest


@value
class ResolveTopicIds:
    """Look up the names of these topic ids. Then topic_ids_resolved()."""

    topic_ids: frozenset[Uuid]


@value
class Wait:
    """Wait for the next event."""


@value
class Fail:
    """Report a fatal error to the reader."""

    error: GroupFailed


Effect: TypeAlias = Revoke | Assign | SendJoin | ComputeAssignment | SendSync | ResolveTopicIds | Wait | Fail
