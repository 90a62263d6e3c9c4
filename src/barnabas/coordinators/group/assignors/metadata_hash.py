"""The metadata hash, by which a group detects changes of its subscribed topics.

A group stores its hash in its record, and bumps its epoch when the hash changes. The hashes equal those of
Kafka 4.3, so that a group whose log was written by Kafka, or will be read by it, does not rebalance
needlessly. They include racks although no assignor uses racks yet, as in Kafka.

The caller caches a topic's hash while its TopicImage does not change.
"""

from collections.abc import Iterator, Mapping
from struct import pack

from barnabas.coordinators.group.assignors.xxh3 import xxh3_64
from barnabas.metadata.image import BrokerImage, TopicImage

# Version of the hashed layout.
_LAYOUT = b"\0"


def topic_hash(topic: TopicImage, brokers: Mapping[int, BrokerImage]) -> int:
    """The hash of a topic's id, name, partitions and replica racks. Signed, 64 bits."""
    count = len(topic.partitions)
    # Java hashes an id as two little-endian numbers.
    parts = [_LAYOUT, topic.id[7::-1], topic.id[:7:-1], _text(topic.name), pack("<i", count)]
    if any(broker.registration.rack is not None for broker in brokers.values()):
        parts += _partitions_with_racks(topic, brokers)
    else:
        parts.append(pack(f"<{count}i", *range(count)))
    return _signed(xxh3_64(b"".join(parts)))


def group_hash(topic_hashes: Mapping[str, int]) -> int:
    """The hash of the topic hashes, in the order of the topic names; 0 without topics. Signed, 64 bits."""
    if not topic_hashes:
        return 0
    in_order = [topic_hashes[name] for name in sorted(topic_hashes)]
    return _signed(xxh3_64(pack(f"<{len(in_order)}q", *in_order)))


def _partitions_with_racks(topic: TopicImage, brokers: Mapping[int, BrokerImage]) -> Iterator[bytes]:
    # Cached, because many partitions have the same replicas.
    known: dict[tuple[int, ...], bytes] = {}
    for number, partition in enumerate(topic.partitions):
        racks = known.get(partition.replicas)
        if racks is None:
            racks = known[partition.replicas] = _racks_of(partition.replicas, brokers)
        yield pack("<i", number)
        yield racks


def _racks_of(replicas: tuple[int, ...], brokers: Mapping[int, BrokerImage]) -> bytes:
    """The racks of the replicas, with duplicates; replicas without a known rack are skipped."""
    racks = [brokers[replica].registration.rack for replica in replicas if replica in brokers]
    # Java sorts strings by UTF-16 code units.
    in_order = sorted((rack for rack in racks if rack is not None), key=lambda rack: rack.encode("utf-16-be"))
    # Each rack is preceded and followed by its length.
    return b"".join(text[-4:] + text for text in map(_text, in_order))


def _text(text: str) -> bytes:
    """A string as the hash library encodes it: its UTF-16 code units, then their count."""
    units = text.encode("utf-16-le")
    return units + pack("<i", len(units) // 2)


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number
