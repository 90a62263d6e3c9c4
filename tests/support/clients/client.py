"""What the checklist asks of a client, whichever it is: the adapters beside this file stand behind it.

The clients are unmodified. An adapter passes on what a story says in its client's own words, sets how long to
wait and where to reconnect sooner than by default, and declares with a reason what its client cannot do.
Nothing here needs a group: consumers are assigned their partitions and commit nothing. What is asked of a
client in a group is in group_client.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypeVar

from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.header import Codec, TimestampType

if TYPE_CHECKING:
    from support.clients.group_client import GroupAdmin, Member, MemberOptions

# How long any one thing may take before a test gives it up. A broker of Java needs ten seconds to restart.
WAIT_SECONDS_MAX = 40.0
# A client that looks for its broker again sooner than by default, so that restarts do not take minutes.
RECONNECT_MS_MAX = 250
# So that a batch of a story is one batch: it ends when the producer is told to finish.
LINGER_MS = 20
BATCH_BYTES_MAX = 900_000

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


class Ability(Enum):
    """What some clients have no way to ask for."""

    CREATE_TOPICS = "create topics"
    DELETE_TOPICS = "delete topics"
    ADD_PARTITIONS = "add partitions"
    DELETE_RECORDS = "delete records"
    SETTINGS = "read and change settings"
    SET_TIMESTAMPS = "set the timestamp of a message"
    NULL_HEADERS = "send a header without a value"
    NULL_KEY_AND_VALUE = "send a message with neither key nor value"
    SNAPPY = "compress with snappy"
    LZ4 = "compress with lz4"
    ZSTD = "compress with zstd"
    READ_NULL_HEADERS = "tell a header without a value from an empty one"
    FAIL_OUT_OF_RANGE = "be told of an offset that is gone"
    NEW_GROUP_PROTOCOL = "be a member of a group by the new protocol"
    STATIC_MEMBERS = "be a static member of a group"
    NEW_STATIC_MEMBERS = "be a static member of a group by the new protocol"
    COMMIT_OUTSIDE = "commit without being a member"
    DESCRIBE_GROUPS = "list and describe groups"
    DESCRIBE_NEW_GROUPS = "describe groups of the new protocol"
    DELETE_GROUPS = "delete groups"
    ALTER_GROUP_OFFSETS = "alter the offsets of a group"
    DELETE_GROUP_OFFSETS = "delete offsets of a group"


class Refused(Exception):
    """What the client raised or reported. The code is None where the client gave up by itself."""

    def __init__(self, code: ErrorCode | None, text: str) -> None:
        super().__init__(f"{'no code' if code is None else code.name}: {text}")
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """To be sent. Without a partition the client chooses one; without a timestamp it takes its clock's."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int | None = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What became of one message: its place, or the error. With acks=0 nobody knows the offset."""

    partition: int | None = None
    offset: int | None = None
    error: Refused | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One record as the consumer hands it to its user. A client that does not show the type of its timestamp
    gives None."""

    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType | None
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True)
class AtTime:
    """Start with the first record that is not older."""

    timestamp_ms: int


Start: TypeAlias = Literal["beginning", "end"] | int | AtTime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions:
    codec: Codec = Codec.NONE
    acks: int = -1
    idempotent: bool = False
    # How long a message is tried before it has failed.
    give_up_after_s: float = WAIT_SECONDS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions:
    start: Start = "beginning"
    partitions: tuple[int, ...] = (0,)
    committed: bool = False
    # For fetch.max.bytes and max.partition.fetch.bytes alike.
    fetch_bytes_max: int | None = None
    # What to do where the offset is not in the log.
    out_of_range: Literal["earliest", "fail"] = "earliest"


class Producer(Protocol):
    def send(self, message: Message) -> None:
        """Hand a message to the client, which sends it when it likes."""

    def finish(self) -> list[Delivery]:
        """Wait for all of them and close; what became of each, in the order of sending."""

    def close(self) -> None:
        """Let go of it, finished or not."""


class Consumer(Protocol):
    def settle(self) -> None:
        """Wait until it knows its position, so that what is produced from now on comes after."""

    def read(self, count: int) -> list[Seen]:
        """The next `count` records. Refused if the client reports an error, AssertionError if none come."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    value: str | None
    # Kafka's name of where the value is from: DYNAMIC_TOPIC_CONFIG, DEFAULT_CONFIG, ...
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Brokers by id, each with host:port. A client that does not show the cluster's id, or who the controller
    is, gives None."""

    cluster_id: str | None
    controller: int | None
    brokers: Mapping[int, str]


class Admin(Protocol):
    """Refused if the broker says no. Whoever cannot do a thing has declared it and is never asked."""

    def create_topic(self, topic: str, *, partitions: int, settings: Mapping[str, str]) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def add_partitions(self, topic: str, total: int) -> None: ...

    def delete_records(self, topic: str, partition: int, *, before: int) -> int:
        """The low watermark afterwards."""

    def topic_settings(self, topic: str) -> Mapping[str, Setting]: ...

    def broker_settings(self, broker: int) -> Mapping[str, Setting]: ...

    def change_topic(self, topic: str, *, wanted: Mapping[str, str], removed: Sequence[str]) -> None:
        """`wanted` is all that is to be set afterwards: some clients can only replace all settings."""

    def change_broker(self, broker: int, *, wanted: Mapping[str, str], removed: Sequence[str]) -> None: ...

    def cluster(self) -> Cluster: ...

    def topics(self) -> Mapping[str, int]:
        """How many partitions each topic has."""

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        """Where the partition begins and where it ends."""

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """The first record that is not older, or None if there is none."""

    def close(self) -> None: ...


class Client(Protocol):
    name: str

    @property
    def cannot(self) -> Mapping[Ability, str]:
        """Asked only where nothing is missing: it may depend on how the client was built."""

    def version(self) -> str: ...

    def missing(self) -> str | None:
        """Why it cannot be run on this machine, if it cannot."""

    def producer(self, address: str, topic: str, options: ProducerOptions) -> Producer: ...

    def consumer(self, address: str, topic: str, options: ConsumerOptions) -> Consumer: ...

    def admin(self, address: str) -> Admin: ...

    def member(self, address: str, topic: str, options: "MemberOptions") -> "Member": ...

    def group_admin(self, address: str) -> "GroupAdmin": ...


class _Closes(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=_Closes)


@contextmanager
def opened(thing: T) -> Iterator[T]:
    """Closed at the end of the block, come what may."""
    try:
        yield thing
    finally:
        thing.close()


def code_of(number: int | None) -> ErrorCode | None:
    """The broker's error code; clients number their own errors below."""
    return ErrorCode(number) if number is not None and number > 0 else None
