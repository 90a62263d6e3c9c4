"""The consumer protocol of classic groups: subscription and assignment."""

from barnabas.protocol.schema.fields import array, binary, int32, string
from barnabas.protocol.schema.struct import message, struct


@struct
class ConsumerProtocolSubscriptionTopicPartition:
    topic: str = string()
    partitions: list[int] = array(int32)


@message("data", versions="0-3", flexible="none")
class ConsumerProtocolSubscription:
    """v1 owned_partitions; v2 generation_id; v3 rack_id"""

    topics: list[str] = array(string)
    user_data: bytes | None = binary(null="0+", default=None)
    owned_partitions: list[ConsumerProtocolSubscriptionTopicPartition] = array(
        ConsumerProtocolSubscriptionTopicPartition, "1+", ignorable=True
    )
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", null="3+", default=None, ignorable=True)


@struct
class ConsumerProtocolAssignmentTopicPartition:
    topic: str = string()
    partitions: list[int] = array(int32)


@message("data", versions="0-3", flexible="none")
class ConsumerProtocolAssignment:
    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = array(
        ConsumerProtocolAssignmentTopicPartition
    )
    user_data: bytes | None = binary(null="0+", default=None)
