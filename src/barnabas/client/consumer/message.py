"""One consumed record (compiled).

All fields are in the object itself: there is one per record, and a second object for the fields that a batch
shares would cost more than it saves.
"""

from mypy_extensions import i64, mypyc_attr

from barnabas.base.ids import TopicPartition
from barnabas.records.header import TimestampType
from barnabas.records.record import Headers


# A message cannot be part of a cycle, so the garbage collector can skip it.
@mypyc_attr(acyclic=True)
class Message:
    """A null key or value is None, unlike an empty one. The leader epoch is -1 if unknown."""

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
        """Return all fields, for comparison."""
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
    """Marks the current end of a partition in the stream (enable.partition.eof); not a record.

    It is a Message, so that typed loops without enable.partition.eof need not distinguish it. Its offset is
    the next offset; key and value are None.
    """

    __slots__ = ()

    def __init__(self, topic: str, partition: i64, offset: i64) -> None:
        super().__init__(topic, partition, offset, -1, TimestampType.CREATE_TIME, None, None, (), -1)

    def __repr__(self) -> str:
        return f"EndOfPartition(topic={self.topic!r}, partition={self.partition}, offset={self.offset})"
