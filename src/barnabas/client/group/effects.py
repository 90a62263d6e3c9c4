"""What a membership wants done next. member.py does it, and tells the membership how it went."""

from collections.abc import Mapping
from typing import TypeAlias

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.base.values import value
from barnabas.client.group.errors import GroupFailed
from barnabas.client.group.subscription import Subscription
from barnabas.protocol.messages.classic_groups import JoinGroupRequest, SyncGroupRequest


@value
class TakeAway:
    """Have readers come back, commit, tell the user, and read these no more. Then took()."""

    tps: frozenset[TopicPartition]


@value
class Give:
    """Read these, of which `added` are new; tell the user. Then gave()."""

    tps: frozenset[TopicPartition]
    added: frozenset[TopicPartition]


@value
class SendJoin:
    """Then join_answered(), or join_lost() if there was no answer."""

    request: JoinGroupRequest


@value
class Divide:
    """Lead: share out the partitions of the topics that anybody wants. Then divided()."""

    assignor: str
    members: Mapping[str, Subscription]


@value
class SendSync:
    """Then sync_answered(), or sync_lost() if there was no answer."""

    request: SyncGroupRequest


@value
class Resolve:
    """Find out what these topics are called. Then resolved()."""

    topic_ids: frozenset[Uuid]


@value
class Stay:
    """Nothing, until something happens."""


@value
class Fail:
    """Nothing any more: whoever reads is told."""

    error: GroupFailed


Effect: TypeAlias = TakeAway | Give | SendJoin | Divide | SendSync | Resolve | Stay | Fail
