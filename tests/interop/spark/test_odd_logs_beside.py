"""Logs with gaps, with what is gone, in transactions: the same rows with Spark's own source and with ours."""

import time
from collections.abc import Iterator
from itertools import count

import pytest
from pyspark.sql import SparkSession

from barnabas.base.ids import TopicPartition
from barnabas.client.admin import topic_resource
from barnabas.client.blocking import Admin, Producer
from support.spark.beside import OURS, THEIRS, Options, Refused, Seen, batch_rows, options_of

_numbers = count()
COMMITTED = {"kafka.isolation.level": "read_committed"}
LENIENT = {"failOnDataLoss": "false"}
# A record or two an answer, by several consumers in turn.
SEVERAL = {"fetchesInFlight": "3", "kafka.max.partition.fetch.bytes": "100"}


def new_topic(address: str, name: str, **settings: str) -> str:
    unique = f"{name}-{next(_numbers)}"
    with Admin(bootstrap_servers=address) as admin:
        told = {key.replace("_", "."): value for key, value in settings.items()}
        admin.create_topic(unique, partitions=1, settings=told)
    return unique


def both(spark: SparkSession, address: str, topic: str, given: Options) -> list[Seen] | Refused:
    """What both agree on, and ours also when it has several fetches under way."""
    options = options_of(address, topic, given)
    theirs = batch_rows(spark, THEIRS, options)
    ours = batch_rows(spark, OURS, options)
    several = batch_rows(spark, OURS, {**options, **SEVERAL})
    assert isinstance(several, Refused) if isinstance(ours, Refused) else several == ours
    if isinstance(theirs, Refused) or isinstance(ours, Refused):
        assert isinstance(theirs, Refused), f"theirs has {len(theirs)} rows, ours: {ours}"
        assert isinstance(ours, Refused), f"ours has {len(ours)} rows, theirs: {theirs}"
        return ours
    assert ours == theirs
    return ours


# What is gone


@pytest.fixture(scope="module")
def aged(address: str) -> str:
    """Offsets 10 to 29 are left."""
    name = new_topic(address, "aged")
    with Producer(bootstrap_servers=address) as producer:
        for number in range(30):
            producer.send(name, b"%d" % number, partition=0)
    with Admin(bootstrap_servers=address) as admin:
        admin.delete_records({TopicPartition(name, 0): 10})
    return name


def offsets(start: int | None, end: int | None) -> dict[str, str]:
    told = {"startingOffsets": start, "endingOffsets": end}
    return {name: f'{{"TOPIC":{{"0":{at}}}}}' for name, at in told.items() if at is not None}


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ({}, 20),
        (offsets(-2, -1), 20),
        (offsets(10, 30), 20),
        (offsets(0, None), None),
        ({**offsets(0, None), **LENIENT}, 20),
        (offsets(5, 20), None),
        ({**offsets(5, 20), **LENIENT}, 10),
        (offsets(0, 8), None),
        ({**offsets(0, 8), **LENIENT}, 0),
        (offsets(9, 9), 0),
        (offsets(40, None), None),
        ({**offsets(40, None), **LENIENT}, None),
        (offsets(40, 50), None),
        ({**offsets(40, 50), **LENIENT}, 0),
        (offsets(20, 50), None),
        ({**offsets(20, 50), **LENIENT}, 10),
        (offsets(None, 5), None),
        ({**offsets(None, 5), **LENIENT}, None),
        ({**offsets(0, 30), "minPartitions": "4"}, None),
    ],
    ids=str,
)
def test_deleted_records_fail_a_query_or_are_skipped(
    spark: SparkSession, address: str, aged: str, given: dict[str, str], rows: int | None
) -> None:
    found = both(spark, address, aged, {"kafkaConsumer.pollTimeoutMs": "5000", **given})

    assert (None if isinstance(found, Refused) else len(found)) == rows, found


def test_deleted_records_are_skipped_by_all_tasks_of_a_partition(
    spark: SparkSession, address: str, aged: str
) -> None:
    """Spark's own may fail: the first of its tasks that misses something lets others have its consumer."""
    options = options_of(address, aged, {**offsets(0, 30), "minPartitions": "4", **LENIENT})

    found = batch_rows(spark, OURS, options)

    assert not isinstance(found, Refused), found
    assert [row[2] for row in found] == list(range(10, 30))


def test_a_topic_made_anew_is_another_one_for_the_next_query(spark: SparkSession, address: str) -> None:
    name = new_topic(address, "anew")
    for size in (20, 5, 7):
        with Admin(bootstrap_servers=address) as admin:
            admin.delete_topic(name)
            admin.create_topic(name, partitions=1)
        with Producer(bootstrap_servers=address) as producer:
            for number in range(size):
                producer.send(name, b"%d" % number)

        found = both(spark, address, name, {"minPartitions": "2"})

        assert not isinstance(found, Refused), found
        assert len(found) == size


# Transactions


@pytest.fixture(scope="module")
def payments(address: str) -> Iterator[str]:
    """Ten transactions of two records, every second one aborted; one that is open; a record after it."""
    name = new_topic(address, "payments")
    with Producer(bootstrap_servers=address, transactional_id=f"{name}-done") as producer:
        for number in range(10):
            producer.begin_transaction()
            producer.send(name, b"%d" % number, partition=0)
            producer.send(name, b"%d again" % number, partition=0)
            if number % 2:
                producer.flush()
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    with Producer(bootstrap_servers=address, transactional_id=f"{name}-open") as producer:
        producer.begin_transaction()
        producer.send(name, b"open", partition=0).result()
        with Producer(bootstrap_servers=address) as other:
            other.send(name, b"after it", partition=0).result()
        yield name
        producer.abort_transaction()


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ({}, 22),
        ({"kafka.isolation.level": "read_uncommitted"}, 22),
        (COMMITTED, 10),
        # A marker follows every two records.
        ({**COMMITTED, **offsets(1, 8)}, 3),
        # What is between is aborted.
        ({**COMMITTED, **offsets(3, 6)}, 0),
        ({**offsets(3, 6)}, 2),
        ({**COMMITTED, "minPartitions": "7"}, 10),
        ({**COMMITTED, "maxRecordsPerPartition": "2"}, 10),
        ({"minPartitions": "31"}, 22),
        # Beyond what is decided.
        ({**COMMITTED, **offsets(0, 31), "kafkaConsumer.pollTimeoutMs": "3000"}, None),
        ({**COMMITTED, **offsets(31, None), "kafkaConsumer.pollTimeoutMs": "3000"}, None),
        (offsets(30, None), 2),
    ],
    ids=str,
)
def test_transactions_are_read_identically(
    spark: SparkSession, address: str, payments: str, given: dict[str, str], rows: int | None
) -> None:
    found = both(spark, address, payments, given)

    assert (None if isinstance(found, Refused) else len(found)) == rows, found


# Gaps, codecs, times


def test_gaps_of_compaction_are_no_loss(spark: SparkSession, address: str) -> None:
    name = new_topic(
        address, "compacted", cleanup_policy="compact", segment_ms="200", min_cleanable_dirty_ratio="0.01"
    )
    with Producer(bootstrap_servers=address) as producer:
        for number in range(200):
            producer.send(name, b"%d" % number, b"%d" % (number % 9 if number < 150 else 10 + number % 20))
        producer.flush()
        plain = options_of(address, name, {})
        found = batch_rows(spark, OURS, plain)
        end = time.monotonic() + 60
        while isinstance(found, Refused) or len(found) > 120:
            assert time.monotonic() < end, "it is compacted in time"
            time.sleep(0.5)
            # What is written last is in a segment that is not compacted.
            producer.send(name, b"last", b"last").result()
            found = batch_rows(spark, OURS, plain)
    # Nothing is cleaned any more, so that both see the same.
    with Admin(bootstrap_servers=address) as admin:
        admin.alter_config(topic_resource(name), {"cleanup.policy": "delete"})
    time.sleep(1)
    middle = '{"TOPIC":{"0":%d}}'

    everything = both(spark, address, name, {})
    some = both(spark, address, name, {"startingOffsets": middle % 120, "endingOffsets": middle % 170})
    shared = both(spark, address, name, {"minPartitions": "5"})

    assert not isinstance(everything, Refused)
    assert 20 <= len(everything) < 120
    assert not isinstance(some, Refused)
    assert not isinstance(shared, Refused)
    assert len(some) < 50
    assert shared == everything


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_read_identically(spark: SparkSession, address: str, codec: str) -> None:
    name = new_topic(address, f"codec-{codec}")
    with Producer(bootstrap_servers=address, compression_type=codec, linger_ms=50) as producer:
        for number in range(500):
            producer.send(name, b"%d" % number * 20, b"%d" % number, headers=[("n", b"%d" % number)])

    found = both(spark, address, name, {"includeHeaders": "true", **offsets(13, 487)})

    assert not isinstance(found, Refused)
    assert len(found) == 474


def test_the_time_of_the_log_is_known_as_that(spark: SparkSession, address: str) -> None:
    name = new_topic(address, "stamped", message_timestamp_type="LogAppendTime")
    with Producer(bootstrap_servers=address) as producer:
        for number in range(5):
            producer.send(name, b"%d" % number, timestamp_ms=1000).result()

    found = both(spark, address, name, {})

    assert not isinstance(found, Refused)
    assert [row[6] for row in found] == [1] * 5
