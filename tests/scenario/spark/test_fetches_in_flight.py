"""Several consumers that fetch a range in turn: the same rows, and faster with a distant broker."""

import random
import time
from collections.abc import Iterator
from itertools import count

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import Admin, Consumer, Producer
from barnabas.spark.planning.splits import OffsetRange
from barnabas.spark.source.fetching import fetches_over
from barnabas.spark.source.ranges import read_range
from support.process.our_broker import OurBroker
from support.process.ports import free_port
from support.wire.long_way import long_way, settings_for

SEED = 9
TIMEOUT_MS = 30_000
COLUMNS = ("offset", "value")
# Small responses, so that a range takes many.
SMALL_ANSWERS = {"max.partition.fetch.bytes": "4000"}
ROUND_TRIP_MS = 100
RECORDS, RECORD_BYTES = 1_000, 100
TRIES = 5
_numbers = count()

Rows = list[tuple[int, bytes]]


def read(address: str, wanted: OffsetRange, fetches: int | None, **settings: str) -> Rows:
    given = {"bootstrap.servers": address, **SMALL_ANSWERS, **settings}
    batches = read_range(wanted, given, COLUMNS, fails_on_loss=True, timeout_ms=TIMEOUT_MS, fetches=fetches)
    return [(row["offset"], row["value"]) for batch in batches for row in batch.to_pylist()]


@pytest.fixture(scope="module")
def odd(address: str) -> OffsetRange:
    """All of a partition whose batches and records are of any size, with transactions of which some end well.

    One that was aborted is longer than some answers. The first records are gone.
    """
    tp = TopicPartition(f"odd-{next(_numbers)}", 0)
    dice = random.Random(SEED)
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(tp.topic, partitions=1)
    for number in range(40):
        settings = {"bootstrap.servers": address, "transactional.id": f"{tp.topic}-{number % 3}"}
        with Producer(settings) as producer:
            producer.begin_transaction()
            for _ in range(300 if number == 20 else dice.randrange(1, 30)):
                producer.send(tp.topic, dice.randbytes(dice.choice((5, 50, 700))), partition=0)
            # Flush, because abort drops records that are not sent.
            producer.flush()
            if number == 20 or number % 4 == 3:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    with Admin(bootstrap_servers=address) as admin:
        admin.delete_records({tp: 17})
    with Consumer(bootstrap_servers=address) as consumer:
        return OffsetRange(tp, 17, consumer.end_offsets([tp])[tp])


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("fetches", [2, 7])
def test_several_fetches_return_the_same_rows_in_the_same_order(
    address: str, odd: OffsetRange, fetches: int, isolation: str
) -> None:
    dice = random.Random(SEED)
    ranges = [odd, *(odd._replace(start=dice.randrange(odd.start, odd.end - 1)) for _ in range(3))]
    ranges += [one._replace(end=dice.randrange(one.start + 1, odd.end)) for one in ranges]
    settings = {"isolation.level": isolation}

    for wanted in ranges:
        alone = read(address, wanted, 1, **settings)
        assert read(address, wanted, fetches, **settings) == alone, wanted
        assert [offset for offset, _ in alone] == sorted({offset for offset, _ in alone})
    whole = read(address, odd, fetches, **settings)
    gaps = odd.size - len(whole)
    # One marker per transaction, and the aborted records.
    assert gaps > 300 if isolation == "read_committed" else gaps in (39, 40)


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    broker = OurBroker(tmp_path_factory.mktemp("far"), settings=settings_for(port))
    with broker.running(), long_way(port, broker.port, ROUND_TRIP_MS) as address:
        yield address


@pytest.fixture(scope="module")
def visits(far: str) -> OffsetRange:
    tp = TopicPartition("visits", 0)
    with Admin(bootstrap_servers=far) as admin:
        admin.create_topic(tp.topic, partitions=1)
    with Producer({"bootstrap.servers": far, "batch.size": "1000"}) as producer:
        for _ in range(RECORDS):
            producer.send(tp.topic, bytes(RECORD_BYTES), partition=0)
    return OffsetRange(tp, 0, RECORDS)


def seconds(far: str, visits: OffsetRange, fetches: int | None) -> float:
    began = time.monotonic()
    assert len(read(far, visits, fetches)) == RECORDS
    return time.monotonic() - began


@pytest.fixture(scope="module")
def alone_s(far: str, visits: OffsetRange) -> float:
    """Seconds with one fetch at a time: some thirty responses, so latency dominates."""
    # Take the minimum: the first run also creates and connects the consumer.
    took = min(seconds(far, visits, 1) for _ in range(2))
    assert took > RECORDS * RECORD_BYTES / 4000 * ROUND_TRIP_MS / 1000
    return took


@pytest.mark.parametrize("fetches", [4, None])
def test_a_distant_broker_gets_several_fetches_at_a_time(
    far: str, visits: OffsetRange, alone_s: float, fetches: int | None
) -> None:
    """None lets the source choose the number of fetches. A busy machine may need several attempts."""
    assert any(seconds(far, visits, fetches) < alone_s / 2 for _ in range(TRIES))


def test_a_near_broker_gets_one_fetch_at_a_time() -> None:
    assert [fetches_over(ms) for ms in (0.0, 0.3, 4.9, 5.0, 20.0, 1000.0)] == [1, 1, 1, 2, 5, 8]
