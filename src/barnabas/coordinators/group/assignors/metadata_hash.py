"""The numbers by which a group sees that what it is subscribed to has changed.

A group writes its number into its record, and its epoch goes up when the number is another. They are the
very numbers of Kafka 4.3, so that a group whose log was written by Kafka, or will be read by it, does not
rebalance for nothing. Racks are in them although no assignor looks at racks yet, as in Kafka.

The caller keeps a topic's number for as long as its TopicImage is the same.
"""

from collections.abc import Iterator, Mapping
from struct import pack

from barnabas.coordinators.group.assignors.xxh3 import xxh3_64
from barnabas.metadata.image import BrokerImage, TopicImage

# What is hashed is of this kind. Another layout would have another number here.
_LAYOUT = b"\0"


def topic_hash(topic: TopicImage, brokers: Mapping[int, BrokerImage]) -> int:
    """Of a topic's id and name, its partitions, and the racks of each one's replicas. Signed, 64 bits."""
    count = len(topic.partitions)
    # Java writes an id as two numbers, and they are hashed with their lowest byte first.
    parts = [_LAYOUT, topic.id[7::-1], topic.id[:7:-1], _text(topic.name), pack("<i", count)]
    if any(broker.registration.rack is not None for broker in brokers.values()):
        parts += _partitions_with_racks(topic, brokers)
    else:
        parts.append(pack(f"<{count}i", *range(count)))
    return _signed(xxh3_64(b"".join(parts)))


def group_hash(topic_hashes: Mapping[str, int]) -> int:
    """Of the numbers of its topics by name; 0 if there are none. Signed, 64 bits."""
    if not topic_hashes:
        return 0
    in_order = [topic_hashes[name] for name in sorted(topic_hashes)]
    return _signed(xxh3_64(pack(f"<{len(in_order)}q", *in_order)))


def _partitions_with_racks(topic: TopicImage, brokers: Mapping[int, BrokerImage]) -> Iterator[bytes]:
    # Many partitions have the same replicas.
    known: dict[tuple[int, ...], bytes] = {}
    for number, partition in enumerate(topic.partitions):
        racks = known.get(partition.replicas)
        if racks is None:
            racks = known[partition.replicas] = _racks_of(partition.replicas, brokers)
        yield pack("<i", number)
        yield racks


def _racks_of(replicas: tuple[int, ...], brokers: Mapping[int, BrokerImage]) -> bytes:
    """One for each replica whose rack is known: two in one rack count twice."""
    racks = [brokers[replica].registration.rack for replica in replicas if replica in brokers]
    # Java sorts strings by their UTF-16 units.
    in_order = sorted((rack for rack in racks if rack is not None), key=lambda rack: rack.encode("utf-16-be"))
    # Before each one stands its length, which ends it too.
    return b"".join(text[-4:] + text for text in map(_text, in_order))


def _text(text: str) -> bytes:
    """As the hash library takes a string: its UTF-16 units, then how many they are."""
    units = text.encode("utf-16-le")
    return units + pack("<i", len(units) // 2)


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number
