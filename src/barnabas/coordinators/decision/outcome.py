"""The outcome of a request or a timer: records to write, and replies to send when they are committed.

The core creates outcomes and refers to requests by their ReplyTo. The host of the shard writes the records
and gives the replies.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, final

from mypy_extensions import mypyc_attr

from barnabas.base.errors import BarnabasError
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.stored.framing import encode_key, encode_value

_NOT_YET: Final = object()


@mypyc_attr(allow_interpreted_subclasses=True)
class Refused(BarnabasError):
    """Raised by guards before any state has changed. Each API converts it to its own response."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@mypyc_attr(acyclic=True)
@final
class Now:
    """The current time: `ms` is wall-clock time for records, `tick_ms` is monotonic time for timers."""

    __slots__ = ("ms", "tick_ms")

    def __init__(self, ms: int, tick_ms: int) -> None:
        self.ms: Final = ms
        self.tick_ms: Final = tick_ms


@mypyc_attr(acyclic=True)
@final
class Caller:
    """The sender of a request, as groups record it. `host` has Kafka's form, "/127.0.0.1"."""

    __slots__ = ("client_id", "host", "version")

    def __init__(self, client_id: str, host: str, version: int) -> None:
        self.client_id: Final = client_id
        self.host: Final = host
        self.version: Final = version


class Record(Protocol):
    """One record of __consumer_offsets. GroupShard.apply() knows its classes."""

    def encoded(self) -> tuple[bytes, bytes | None]:
        """Serialized key and value; None is a tombstone."""


@mypyc_attr(acyclic=True)
class PackedRecord:
    """A Record encoded by compiled code: encode_record() calls it without an attribute lookup."""

    __slots__ = ()

    def encoded(self) -> tuple[bytes, bytes | None]:
        raise NotImplementedError


def encode_record(record: Record) -> tuple[bytes, bytes | None]:
    """The same as record.encoded(), but fast for a PackedRecord."""
    if isinstance(record, PackedRecord):
        # mypyc compiles this call to a vtable call.
        return record.encoded()
    return record.encoded()


class StoredRecord(NamedTuple):
    """A record of any kind as its stored messages. A `value` of None is a tombstone."""

    key: Any
    value: Any
    version: int = 0

    def encoded(self) -> tuple[bytes, bytes | None]:
        return encode_key(self.key), None if self.value is None else encode_value(self.value, self.version)


class InTransaction(NamedTuple):
    """The records of an outcome are one batch of this producer's transaction."""

    producer_id: int
    producer_epoch: int
    # The verification that the log requires for the first batch of a transaction. Opaque to the core.
    proof: Any = None
    must_verify: bool = False


class EndMarker(NamedTuple):
    """The outcome is a control batch that ends the producer's transaction in this log."""

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    # The transaction version of the client. (KIP-890)
    transaction_version: int


@mypyc_attr(allow_interpreted_subclasses=True)
class ReplyTo:
    """A pending request. The core only keeps it until it has a response; the host calls the methods."""

    __slots__ = ()

    @property
    def is_given(self) -> bool:
        """Whether it has been answered."""
        raise NotImplementedError

    def give(self, answer: object) -> None:
        """Deliver the answer."""
        raise NotImplementedError

    def refuse(self, code: ErrorCode) -> None:
        """Deliver an error instead of an answer."""
        raise NotImplementedError


class PendingReply(ReplyTo):
    """Answered once. Most answers come before the handler returns; later ones call `then`."""

    __slots__ = ("_then", "answer")

    def __init__(self) -> None:
        self._then: Callable[[object], None] | None = None
        self.answer: object = _NOT_YET

    @property
    def is_given(self) -> bool:
        return self.answer is not _NOT_YET

    def give(self, answer: object) -> None:
        assert self.answer is _NOT_YET, "already answered"
        self.answer = answer
        if self._then is not None:
            self._then(answer)

    def refuse(self, code: ErrorCode) -> None:
        self.give(self.refusal(code))

    @abstractmethod
    def refusal(self, code: ErrorCode) -> object:
        """The error response for a code."""

    def then_call(self, then: Callable[[object], None]) -> None:
        assert self.answer is _NOT_YET, "already answered"
        self._then = then


class Reply(PendingReply):
    """A PendingReply whose error response is built by a function."""

    __slots__ = ("_refusal",)

    def __init__(self, refusal: Callable[[ErrorCode], object]) -> None:
        super().__init__()
        self._refusal = refusal

    def refusal(self, code: ErrorCode) -> object:
        return self._refusal(code)


class Outcome:
    """Records are written to the log as one batch, in order, then each is applied; then the answers are
    given.

    If the write fails, the answers are dropped: the shell refuses all pending requests and reloads the shard.
    A stamped or tentative outcome must not have changed any state yet, so the log may refuse it without a
    reload. A divisible outcome may be written as several batches.
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
        """Append the records and answers of `other`."""
        self.records += other.records
        self.answers += other.answers


def answered(to: ReplyTo, response: object) -> Outcome:
    """An outcome with one answer and no records."""
    outcome = Outcome()
    outcome.answer(to, response)
    return outcome
