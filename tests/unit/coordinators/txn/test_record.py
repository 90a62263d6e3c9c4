"""Records of __transaction_state: which bytes are written at which level, and what is read from them."""

from collections.abc import Iterator
from random import Random

import pytest

from barnabas.base.errors import Malformed
from barnabas.base.ids import TopicPartition
from barnabas.coordinators.txn import record
from barnabas.coordinators.txn.record import (
    TxnRecord,
    decode_record,
    fit,
    is_larger,
    record_version,
    size_bound,
)
from barnabas.coordinators.txn.state import Txn, TxnState
from barnabas.protocol.stored.framing import TRANSACTION_STATE, UnknownRecord, encode_key, encode_value
from barnabas.protocol.stored.transactions import TransactionLogKey
from barnabas.records.decode import decode_batch
from barnabas.records.header import read_header
from support.kafka.sample import sample_files

pytestmark = pytest.mark.kernel

FULL = Txn(
    producer_id=4_001,
    producer_epoch=32_767,
    prev_producer_id=4_000,
    next_producer_id=4_002,
    next_producer_epoch=3,
    last_producer_epoch=32_766,
    timeout_ms=60_000,
    state=TxnState.PREPARE_COMMIT,
    partitions=frozenset({TopicPartition("b", 2), TopicPartition("a", 1), TopicPartition("b", 0)}),
    start_ms=1_700_000_000_000,
    last_update_ms=1_700_000_000_001,
    client_version=2,
)
# "t", as Kafka 4.3 writes it: the type of the record, the length, the name.
KEY = bytes.fromhex("0000 0001 74")
KEY_OF_LATER = bytes.fromhex("0007 0001 74")
VALUE = bytes.fromhex(
    "0001"
    "0000000000000fa1 7fff 0000ea60 02"
    # Two topics, in the order of their names.
    "03 0261 02 00000001 00 0262 03 00000000 00000002 00"
    "0000018bcfe56801 0000018bcfe56800"
    # Previous and next producer id, the version of the client, the next epoch.
    "04 00 08 0000000000000fa0 01 08 0000000000000fa2 02 02 0002 03 02 0003"
)
OLD_VALUE = bytes.fromhex(
    "0000"
    "0000000000000fa1 7fff 0000ea60 02"
    "00000002 0001 61 00000001 00000001 0001 62 00000002 00000000 00000002"
    "0000018bcfe56801 0000018bcfe56800"
)


def test_a_record_holds_all_fields_but_the_previous_epoch() -> None:
    assert TxnRecord("t", FULL).encoded() == (KEY, VALUE)
    assert decode_record(KEY, VALUE) == TxnRecord("t", FULL.durable(), 1)
    assert FULL.durable() == FULL._replace(last_producer_epoch=-1)


@pytest.mark.parametrize("seed", range(50))
def test_the_tuned_encoder_equals_the_declared_codec(seed: int) -> None:
    rng = Random(seed)
    topics = ["a", "orders", "ß" * 70, "x" * 249]
    partitions = {
        TopicPartition(rng.choice(topics), rng.randrange(300)) for _ in range(rng.choice([0, 1, 5, 300]))
    }
    txn = Txn(
        producer_id=rng.randrange(2**63),
        producer_epoch=rng.randrange(2**15),
        prev_producer_id=rng.choice([-1, rng.randrange(2**63)]),
        next_producer_id=rng.choice([-1, rng.randrange(2**63)]),
        next_producer_epoch=rng.choice([-1, rng.randrange(2**15)]),
        last_producer_epoch=-1,
        timeout_ms=rng.randrange(2**31),
        state=rng.choice([state for state in TxnState if state or not partitions]),
        partitions=frozenset(partitions),
        start_ms=rng.choice([-1, rng.randrange(2**40)]),
        last_update_ms=rng.randrange(2**40),
        client_version=rng.choice([0, 2]),
    )
    name = rng.choice(["t", "träger", "x" * 1_000])

    key, value = TxnRecord(name, txn).encoded()

    assert key == encode_key(TransactionLogKey(transactional_id=name))
    assert value is not None
    told, version = TRANSACTION_STATE.decode_value(TransactionLogKey(), value)
    assert encode_value(told, version) == value
    assert decode_record(key, value) == TxnRecord(name, txn)


def test_damaged_bytes_are_read_as_the_declared_codec_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(0)
    idle = FULL._replace(
        state=TxnState.COMPLETE_ABORT, partitions=frozenset(), next_producer_id=-1, next_producer_epoch=-1
    )
    _, good = TxnRecord("t", idle).encoded()
    assert good is not None
    damaged = [good, good[:35] + good[45:] + good[35:45], good[:34] + b"\2" + 2 * good[35:45]]
    for _ in range(2_000):
        value = bytearray(good)
        value[rng.choice([0, 1, 16, 17, *range(34, len(good))])] = rng.choice(
            [0, 1, 2, 3, 8, rng.randrange(256)]
        )
        damaged.append(bytes(value[: rng.choice([len(value), len(value), rng.randrange(len(value))])]))

    by_hand = [_read(value) for value in damaged]
    monkeypatch.setattr(record, "_unpacked_idle", lambda _: None)

    assert [_read(value) for value in damaged] == by_hand
    assert sum(isinstance(one, TxnRecord) for one in by_hand) > 100


def _read(value: bytes) -> object:
    try:
        return decode_record(KEY, value)
    except Malformed as error:
        return str(error)


def test_records_of_kafka_are_encoded_identically() -> None:
    records = [one for batch in _sample_batches() for one in decode_batch(batch)]
    assert len(records) == 41

    for one in records:
        assert one.key is not None
        read = decode_record(one.key, one.value)
        assert read.txn is not None
        # Kafka has topics in the order of its hash table.
        if len({tp.topic for tp in read.txn.partitions}) <= 1:
            assert read.encoded() == (one.key, one.value)
        assert decode_record(*read.encoded()) == read


def _sample_batches() -> Iterator[bytes]:
    for path, log in sample_files().items():
        if path.startswith("__transaction_state") and path.endswith(".log"):
            at = 0
            while at < len(log):
                size = read_header(log, at).size
                yield log[at : at + size]
                at += size


def test_at_level_0_a_record_has_no_version_and_no_other_ids() -> None:
    fitted = fit(FULL, 0)

    assert TxnRecord("t", fitted, 0).encoded() == (KEY, OLD_VALUE)
    assert decode_record(KEY, OLD_VALUE) == TxnRecord("t", fitted.durable(), 0)
    assert (fitted.prev_producer_id, fitted.next_producer_id, fitted.client_version) == (-1, -1, 0)
    assert fit(FULL, 1) is FULL


@pytest.mark.parametrize(("level", "version"), [(0, 0), (1, 1), (2, 1)])
def test_the_level_of_the_cluster_decides_the_version(level: int, version: int) -> None:
    assert record_version(level) == version


@pytest.mark.parametrize("version", [0, 1])
def test_empty_and_complete_transactions_have_no_partitions(version: int) -> None:
    for state in (TxnState.EMPTY, TxnState.COMPLETE_ABORT):
        txn = fit(FULL._replace(state=state, partitions=frozenset()), version)

        key, value = TxnRecord("t", txn, version).encoded()

        assert value is not None
        at = 2 + 8 + 2 + 4 + 1
        count = value[at : at + 1] if version else value[at : at + 4]
        none = b"\0" if version else b"\xff\xff\xff\xff"
        empty = b"\1" if version else b"\0\0\0\0"
        assert count == (none if state is TxnState.EMPTY else empty)
        assert decode_record(key, value) == TxnRecord("t", txn.durable(), version)


def test_a_tombstone_has_no_value() -> None:
    assert TxnRecord("t", None).encoded() == (KEY, None)
    assert decode_record(KEY, None) == TxnRecord("t", None)


def test_the_bound_of_a_size_holds() -> None:
    long = TopicPartition("ß" * 249, 5)
    for txn in (FULL, FULL._replace(partitions=frozenset({long, *FULL.partitions}))):
        for version in (0, 1):
            key, value = TxnRecord("t", fit(txn, version), version).encoded()
            assert value is not None
            # With what a batch and a record need around it.
            assert len(key) + len(value) + 61 + 21 <= size_bound("t", txn)


def test_the_size_estimate_accepts_many_partitions_of_a_topic() -> None:
    many = frozenset(TopicPartition("orders", number) for number in range(100))
    long = frozenset(TopicPartition("ß" * 249, number) for number in range(2))
    for partitions in (FULL.partitions, many, long):
        txn = FULL._replace(partitions=partitions)
        enough = next(size for size in range(5_000) if not is_larger("t", txn, size))
        for version in (0, 1):
            key, value = TxnRecord("t", fit(txn, version), version).encoded()
            assert value is not None
            # Not much more than the record, and what a batch needs around it.
            assert 0 <= enough - (len(key) + len(value) + 61 + 21) < 100


def test_records_of_a_later_release_are_unknown() -> None:
    with pytest.raises(UnknownRecord):
        decode_record(KEY_OF_LATER, VALUE)
    with pytest.raises(UnknownRecord):
        decode_record(KEY, b"\0\2" + VALUE[2:])


@pytest.mark.parametrize("status", [6, 7, 8, -1])
def test_a_state_that_is_never_written_is_malformed(status: int) -> None:
    with pytest.raises(Malformed, match="unknown state"):
        decode_record(KEY, VALUE[:16] + status.to_bytes(1, "big", signed=True) + VALUE[17:])


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\1", VALUE[:-1]])
def test_bytes_that_are_cut_are_malformed(value: bytes) -> None:
    with pytest.raises(Malformed):
        decode_record(KEY, value)
