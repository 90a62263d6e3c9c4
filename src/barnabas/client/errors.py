"""What can go wrong between a client and a cluster, with the facts.

is_retriable() says whether the same thing may go well a moment later. What only a producer or a consumer can
meet is declared beside them.
"""

from collections.abc import Mapping, Sequence

from barnabas.base.errors import BarnabasError
from barnabas.protocol.error_codes import ErrorCode


class ClientError(BarnabasError):
    """The root of what the client raises."""

    retriable = False


class BrokerUnavailable(ClientError):
    """Nobody could be reached."""

    retriable = True

    def __init__(self, addresses: Sequence[str], why: str) -> None:
        super().__init__(f"no broker at {', '.join(addresses)}: {why}")
        self.addresses = tuple(addresses)
        self.why = why


class NotKafka(ClientError):
    """What answers there does not speak Kafka's protocol."""

    def __init__(self, address: str, why: str) -> None:
        super().__init__(f"{address} does not speak the Kafka protocol: {why}")
        self.address = address
        self.why = why


class ConnectionLost(ClientError):
    """The broker went away in the middle. Whether it did what it was asked is not known."""

    retriable = True

    def __init__(self, address: str, why: str) -> None:
        super().__init__(f"connection to {address} lost: {why}")
        self.address = address
        self.why = why


class RequestTimedOut(ClientError):
    """No answer in time. Whether the broker did what it was asked is not known."""

    retriable = True

    def __init__(self, api: str, address: str, timeout_ms: float) -> None:
        super().__init__(f"{api}: no response from {address} within {timeout_ms:.0f} ms")
        self.api = api
        self.address = address
        self.timeout_ms = timeout_ms


class UnsupportedByBroker(ClientError):
    """The broker has no version of this API that we speak."""

    def __init__(self, api: str, address: str, why: str) -> None:
        super().__init__(f"{address} does not support {api}: {why}")
        self.api = api
        self.address = address
        self.why = why


class Closed(ClientError):
    """This client, or what was asked of it, ended because it was closed."""

    def __init__(self, what: str = "the client") -> None:
        super().__init__(f"{what} is closed")


class Refused(ClientError):
    """The broker said no. `about` names what was refused: a topic, a partition, a resource."""

    def __init__(self, code: ErrorCode, *, about: str, message: str | None = None) -> None:
        super().__init__(f"{about}: {code.name}" + (f": {message}" if message else ""))
        self.code = code
        self.about = about
        self.message = message
        self.retriable = code.retriable


class UnknownTopic(Refused):
    """There is no such topic or partition, as far as the brokers know."""

    def __init__(self, *, about: str, message: str | None = None) -> None:
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, about=about, message=message)


class SomeRefused(ClientError):
    """Several things were asked for at once and tried; these were refused, and the others done."""

    def __init__(self, refused: Mapping[str, Refused]) -> None:
        super().__init__("; ".join(str(each) for each in refused.values()))
        self.refused = dict(refused)


def refused(code: int, *, about: str, message: str | None = None) -> Refused:
    """The error for a code of an answer, which must not be NONE."""
    known = ErrorCode.of(code)
    if known is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return UnknownTopic(about=about, message=message)
    return Refused(known, about=about, message=message)


def is_retriable(error: BaseException) -> bool:
    """Whether the same request may go well later without anybody changing it."""
    return isinstance(error, ClientError) and error.retriable
