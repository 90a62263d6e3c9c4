"""Which topics the members of a group read, as far as their metadata says so."""

from collections.abc import Iterable
from typing import Final

from barnabas.base.errors import Malformed
from barnabas.protocol.schema.codec import decode
from barnabas.protocol.stored.consumer_protocol import ConsumerProtocolSubscription

# The protocol type of consumers. Others, such as Connect's workers, say what only they understand.
CONSUMER_TYPE: Final = "consumer"

# Topics are the first field of every version, so all are read as the first one.
_VERSION: Final = 0
_VERSION_BYTES: Final = 2


class Subscriptions:
    """The metadata of a generation. It is read when somebody asks: most groups are never asked."""

    __slots__ = ("_metadata", "_topics")

    def __init__(self, metadata: Iterable[bytes]) -> None:
        # Members of one application mostly say the same.
        self._metadata: frozenset[bytes] | None = frozenset(metadata)
        self._topics: frozenset[str] | None = None

    @property
    def topics(self) -> frozenset[str] | None:
        """None if some metadata cannot be read: then nobody knows."""
        if self._metadata is not None:
            self._topics = _topics_of(self._metadata)
            self._metadata = None
        return self._topics


def _topics_of(metadata: Iterable[bytes]) -> frozenset[str] | None:
    topics: set[str] = set()
    for one in metadata:
        try:
            subscription, _ = decode(ConsumerProtocolSubscription, _VERSION, one, _VERSION_BYTES)
        except Malformed:
            return None
        topics.update(subscription.topics)
    return frozenset(topics)
