"""The topics that the members of a classic group subscribe to, decoded from their metadata."""

from collections.abc import Iterable
from typing import Final

from barnabas.base.errors import Malformed
from barnabas.protocol.schema.codec import decode
from barnabas.protocol.stored.consumer_protocol import ConsumerProtocolSubscription

# The protocol type of consumers. The metadata of other types, such as Connect workers, is opaque.
CONSUMER_TYPE: Final = "consumer"

# Topics are the first field in every version, so all metadata is decoded as version 0.
_VERSION: Final = 0
_VERSION_BYTES: Final = 2


class Subscriptions:
    """The metadata of a generation. Decoded lazily, because most groups never need it."""

    __slots__ = ("_metadata", "_topics")

    def __init__(self, metadata: Iterable[bytes]) -> None:
        # A set, because members of one application mostly have equal metadata.
        self._metadata: frozenset[bytes] | None = frozenset(metadata)
        self._topics: frozenset[str] | None = None

    @property
    def topics(self) -> frozenset[str] | None:
        """The subscribed topics; None if any metadata cannot be decoded."""
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
