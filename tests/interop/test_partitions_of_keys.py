"""Published clients put keys where it is recorded that they do.

Java's producer and librdkafka are asked anew and compared with tests/fixtures/partitions-of-keys.json, which
the unit tests of client/producer/key_hashes.py rely on. BARNABAS_WRITE_PARTITIONS=1 writes the file.
Needs Java and Maven as the other tests here do.
"""

import os
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from random import Random

import confluent_kafka as ck
import pytest

from support.clients.client import WAIT_SECONDS_MAX, Message, ProducerOptions, opened
from support.clients.java_client import JAVA, java_program
from support.clients.remote import CannotBuild
from support.clients.remote_process import RemoteProcess
from support.clients.stage import Stage
from support.our_client.recorded_partitions import RecordedPartitions
from support.process.our_broker import OurBroker

WRITING = os.environ.get("BARNABAS_WRITE_PARTITIONS") == "1"
PARTITION_COUNTS = (1, 2, 3, 7, 12, 100, 1000)
SEED = 20260731
LENGTH_MAX = 40
RANDOM_KEYS = 60
RANDOM_LENGTH_MAX = 200
LONG = 10_000
WORDS = (
    "größe",
    "城",
    "Варнава",
    "naïve café",
    "🏰",
    "der Bote\u0000des Schlosses",
    "user-42",
    "customer:1000001",
)
# Their FNV-1a is the one number that has no positive counterpart in 32 bits.
LOWEST_FNV1A = (b"afjtjzd", b"nyikjtf")
LIBRDKAFKA = ("murmur2", "murmur2_random", "consistent", "consistent_random", "fnv1a", "fnv1a_random")


def sample_keys() -> list[bytes]:
    random = Random(SEED)
    one_byte = [bytes([byte]) for byte in range(256)]
    lengths = [random.randbytes(length) for length in range(1, LENGTH_MAX + 1)]
    any_keys = [random.randbytes(random.randint(1, RANDOM_LENGTH_MAX)) for _ in range(RANDOM_KEYS)]
    words = [word.encode() for word in WORDS]
    return [b"", *one_byte, *lengths, *words, *LOWEST_FNV1A, *any_keys, random.randbytes(LONG)]


@pytest.fixture(scope="module")
def recorded() -> Iterator[RecordedPartitions]:
    if not WRITING:
        yield RecordedPartitions.read()
        return
    fresh = RecordedPartitions(sample_keys())
    yield fresh
    fresh.write()


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[int, str]]]:
    """The address of a broker, and a topic for every number of partitions."""
    broker = OurBroker(tmp_path_factory.mktemp("ours"))
    with broker.running():
        stage = Stage(broker, "keys")
        yield broker.address, {count: stage.topic(partitions=count) for count in PARTITION_COUNTS}


def check(
    recorded: RecordedPartitions, partitioner: str, count: int, partitions: Sequence[int | None]
) -> None:
    """What is not recorded yet is recorded now, and whoever comes second has to agree."""
    known = recorded.get(partitioner, count)
    if WRITING and known is None:
        recorded.add(partitioner, count, partitions)
    else:
        assert list(partitions) == known, f"{partitioner} with {count} partitions"


def test_the_recording_covers_the_tested_keys(recorded: RecordedPartitions) -> None:
    assert recorded.keys == sample_keys()


def test_the_java_partitioner_chooses_the_recorded_partitions(recorded: RecordedPartitions) -> None:
    keys = [b64encode(key).decode() for key in recorded.keys]
    try:
        java = RemoteProcess("java", java_program("Checklist"))
    except CannotBuild as reason:
        pytest.skip(str(reason))

    hashes = java.ask({"op": "hashes_of_keys", "keys": keys})["ok"]
    chosen = {
        count: java.ask({"op": "partitions_of_keys", "keys": keys, "partitions": count})["ok"]
        for count in PARTITION_COUNTS
    }
    java.close()

    if WRITING:
        recorded.murmur2 = hashes
    assert hashes == recorded.murmur2
    for count, partitions in chosen.items():
        check(recorded, "java", count, partitions)


@pytest.mark.parametrize("count", PARTITION_COUNTS)
def test_the_java_producer_delivers_where_it_is_recorded(
    count: int, recorded: RecordedPartitions, topics: tuple[str, dict[int, str]]
) -> None:
    missing = JAVA.missing()
    if missing is not None:
        pytest.skip(missing)
    address, by_count = topics

    with opened(JAVA.producer(address, by_count[count], ProducerOptions())) as producer:
        for key in recorded.keys:
            producer.send(Message(key=key, value=b"", partition=None))
        deliveries = producer.finish()

    assert [each.error for each in deliveries if each.error is not None] == []
    check(recorded, "java", count, [each.partition for each in deliveries])


@pytest.mark.parametrize("partitioner", LIBRDKAFKA)
def test_librdkafka_delivers_where_it_is_recorded(
    partitioner: str, recorded: RecordedPartitions, topics: tuple[str, dict[int, str]]
) -> None:
    address, by_count = topics
    producer = ck.Producer({"bootstrap.servers": address, "partitioner": partitioner, "linger.ms": 20})

    for count, topic in by_count.items():
        found: list[int | None] = [None] * len(recorded.keys)
        for at, key in enumerate(recorded.keys):
            producer.produce(topic, b"", key, on_delivery=_noting(found, at))
        assert producer.flush(WAIT_SECONDS_MAX) == 0

        assert None not in found
        if partitioner == "consistent_random":
            # To this one an empty key is as good as none, so it goes anywhere.
            found[recorded.keys.index(b"")] = None
        check(recorded, partitioner, count, found)
    producer.close()


def _noting(found: list[int | None], at: int) -> Callable[[ck.KafkaError | None, ck.Message], None]:
    def note(error: ck.KafkaError | None, message: ck.Message) -> None:
        if error is None:
            found[at] = message.partition()

    return note
