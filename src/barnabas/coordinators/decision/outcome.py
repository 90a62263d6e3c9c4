"""What comes of a request or of a timer: records to write, and answers for when they are committed."""

from typing import Any, Final, NamedTuple, Protocol, final

from mypy_extensions import mypyc_attr

from barnabas.protocol.stored.framing import encode_key, encode_value


@mypyc_attr(acyclic=True)
@final
class Now:
    """The time: `ms` for what is written down, `tick_ms`, which never jumps, for waiting."""

    __slots__ = ("ms", "tick_ms")

    def __init__(self, ms: int, tick_ms: int) -> None:
        self.ms: Final = ms
        self.tick_ms: Final = tick_ms


@mypyc_attr(acyclic=True)
@final
class Caller:
    """Who sent a request: what groups write down of it. `host` is Kafka's form, "/127.0.0.1"."""

    __slots__ = ("client_id", "host", "version")

    def __init__(self, client_id: str, host: str, version: int) -> None:
        self.client_id: Final = client_id
        self.host: Final = host
        self.version: Final = version


class Record(Protocol):
    """One record of __consumer_offsets. Which classes there are is known to GroupShard.apply()."""

    def encoded(self) -> tuple[bytes, bytes | None]:
        """Key and value as they are written; no value is a tombstone."""


@mypyc_attr(acyclic=True)
class PackedRecord:
    """A Record that compiled code packs: encode_record() calls it without looking its method up."""

    __slots__ = ()

    def encoded(self) -> tuple[bytes, bytes | None]:
        raise NotImplementedError


def encode_record(record: Record) -> tuple[bytes, bytes | None]:
    """What record.encoded() says."""
    if isinstance(record, PackedRecord):
        # The same words, and another call: this one goes through a table in C.
        return record.encoded()
    return record.encoded()


class StoredRecord(NamedTuple):
    """A record of any kind as its stored messages. `value` None is a tombstone."""

    key: Any
    value: Any
    version: int = 0

    def encoded(self) -> tuple[bytes, bytes | None]:
        return encode_key(self.key), None if self.value is None else encode_value(self.value, self.version)


class InTransaction(NamedTuple):
    """The records of an outcome are one batch of this producer's transaction."""

    producer_id: int
    producer_epoch: int
    # What the log wants to see with the first batch of a transaction; the shell knows what it is.
    proof: Any = None
    must_verify: bool = False


class EndMarker(NamedTuple):
    """The outcome is a marker: the producer's transaction has ended, in this log."""

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    # That of the client whose transaction it was. (KIP-890)
    transaction_version: int


@mypyc_attr(allow_interpreted_subclasses=True)
class ReplyTo:
    """Stands for somebody who waits. The core keeps it while it has no answer, and only hands it back."""

    __slots__ = ()


class Outcome:
    """Records go to the log as one batch, in this order, then each to apply(). Then the answers are given.

    If the records are refused nothing is answered from here: the shell tells everybody that the coordinator
    is gone, and loads the shard again. What is stamped or tentative may be refused without that: it must have
    changed nothing yet. What is divisible may take several batches.
    """

    __slots__ = ("answers", "is_divisible", "is_tentative", "records", "stamp")

    def __init__(
        self,
        stamp: InTransaction | EndMarker | None = None,
        *,
        is_tentative: bool = False,
        is_divisible: bool = False,
    ) -> None:
        self.stamp = stamp
        self.is_tentative = is_tentative or stamp is not None
        self.is_divisible = is_divisible
        self.records: list[Record] = []
        self.answers: list[tuple[ReplyTo, object]] = []

    def write(self, record: Record) -> None:
        self.records.append(record)

    def answer(self, to: ReplyTo, response: object) -> None:
        self.answers.append((to, response))

    def add(self, other: "Outcome") -> None:
        """What follows from it goes after what there is."""
        self.records += other.records
        self.answers += other.answers


def answered(to: ReplyTo, response: object) -> Outcome:
    """Nothing but an answer."""
    outcome = Outcome()
    outcome.answer(to, response)
    return outcome
