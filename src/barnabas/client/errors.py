"""Errors of clients.

is_retriable() says whether the same request may succeed later. Errors of producers and consumers are declared
in their packages.
"""

from collections.abc import Mapping, Sequence

from barnabas.base.errors import BarnabasError
from barnabas.protocol.error_codes import ErrorCode


class ClientError(BarnabasError):
    """Base class of all client errors."""

    retriable = False


class BrokerUnavailable(ClientError):
    """No broker could be reached."""

    retriable = True

    def __init__(self, addresses: Sequence[str], why: str) -> None:
        super().__init__(f"no broker at {', '.join(addresses)}: {why}")
        self.addresses = tuple(addresses)
        self.why = why


class NotKafka(ClientError):
    """The peer does not speak the Kafka protocol."""

    def __init__(self, address: str, why: str) -> None:
        super().__init__(f"{address} does not speak the Kafka protocol: {why}")
        self.address = address
        self.why = why


class ConnectionLost(ClientError):
    """The connection broke during a request. It is unknown whether the request was carried out."""

    retriable = True

    def __init__(self, address: str, why: str) -> None:
        super().__init__(f"connection to {address} lost: {why}")
        self.address = address
        self.why = why


class RequestTimedOut(ClientError):
    """No response in time. It is unknown whether the request was carried out."""

    retriable = True

    def __init__(self, api: str, address: str, timeout_ms: float) -> None:
        super().__init__(f"{api}: no response from {address} within {timeout_ms:.0f} ms")
        self.api = api
        self.address = address
        self.timeout_ms = timeout_ms


class UnsupportedByBroker(ClientError):
    """The broker has no version of this API that the client supports."""

    def __init__(self, api: str, address: str, why: str) -> None:
        super().__init__(f"{address} does not support {api}: {why}")
        self.api = api
        self.address = address
        self.why = why


class Closed(ClientError):
    """The client was closed."""

    def __init__(self, what: str = "the client") -> None:
        super().__init__(f"{what} is closed")


class Refused(ClientError):
    """The broker returned an error code. `about` is the item: a topic, a partition, a resource."""

    def __init__(self, code: ErrorCode, *, about: str, message: str | None = None) -> None:
        super().__init__(f"{about}: {code.name}" + (f": {message}" if message else ""))
        self.code = code
        self.about = about
        self.message = message
        self.retriable = code.retriable


class UnknownTopic(Refused):
    """The topic or partition does not exist, according to the brokers."""

    def __init__(self, *, about: str, message: str | None = None) -> None:
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, about=about, message=message)


class SomeRefused(ClientError):
    """A request for several items failed for those in `refused`; the others succeeded."""

    def __init__(self, refused: Mapping[str, Refused]) -> None:
        super().__init__("; ".join(str(each) for each in refused.values()))
        self.refused = dict(refused)


def refused(code: int, *, about: str, message: str | None = None) -> Refused:
    """Return the error for a response's code, which must not be NONE."""
    known = ErrorCode.of(code)
    if known is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return UnknownTopic(about=about, message=message)
    return Refused(known, about=about, message=message)


def is_retriable(error: BaseException) -> bool:
    """Whether the same request may succeed later."""
    return isinstance(error, ClientError) and error.retriable
