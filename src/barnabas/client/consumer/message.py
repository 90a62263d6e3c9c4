"""One record as a consumer's user sees it (compiled).

All fields lie in the object itself: a consumer makes one for every record, and a second object for what
a batch has in common would cost more than the few words it saves.
"""

from mypy_extensions import i64, mypyc_attr

from barnabas.base.ids import TopicPartition
from barnabas.records.header import TimestampType
from barnabas.records.record import Headers


# It can not be part of a cycle, so the garbage collector need not visit millions of them.
@mypyc_attr(acyclic=True)
class Message:
    """A null key or value is None, which is not the same as empty. The epoch is -1 where there is none."""

    __slots__ = (
        "headers",
        "key",
        "leader_epoch",
        "offset",
        "partition",
        "timestamp",
        "timestamp_type",
        "topic",
        "value",
    )

    def __init__(
        self,
        topic: str,
        partition: i64,
        offset: i64,
        timestamp: i64,
        timestamp_type: TimestampType,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        leader_epoch: i64,
    ) -> None:
        self.topic = topic
        self.partition: i64 = partition
        self.offset: i64 = offset
        self.timestamp: i64 = timestamp
        self.timestamp_type = timestamp_type
        self.key = key
        self.value = value
        self.headers = headers
        self.leader_epoch: i64 = leader_epoch

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return type(self) is type(other) and self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash(self.fields())

    def __repr__(self) -> str:
        return (
            f"Message(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})"
        )

    def fields(self) -> tuple[object, ...]:
        """Everything, for comparing."""
        return (
            self.topic,
            self.partition,
            self.offset,
            self.timestamp,
            self.timestamp_type,
            self.key,
            self.value,
            self.headers,
            self.leader_epoch,
        )


@mypyc_attr(acyclic=True)
class EndOfPartition(Message):
    """Not a record: it stands in the stream where a partition has no more for now (enable.partition.eof).

    It is a Message, so that a typed loop that never asked for ends need not tell them apart. Its offset is
    the one that comes next; key and value are None.
    """

    __slots__ = ()

    def __init__(self, topic: str, partition: i64, offset: i64) -> None:
        super().__init__(topic, partition, offset, -1, TimestampType.CREATE_TIME, None, None, (), -1)

    def __repr__(self) -> str:
        return f"EndOfPartition(topic={self.topic!r}, partition={self.partition}, offset={self.offset})"
