"""Unmodified clients on our bytes: what they send decodes to what they were given, and they read what we
write.

Every test ends with the same question about the wire: does each request that a client sent encode back to the
bytes that came, and each answer decode to what was meant? So all traffic here also checks the codec.
"""

import socket
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest

from barnabas.base.errors import Malformed
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.exchange import UnsupportedRequest, encode_request
from barnabas.protocol.messages.cluster import MetadataRequest
from barnabas.protocol.schema.codec import encode
from barnabas.protocol.stored.control import EndTxnMarker
from barnabas.records.builder import BatchBuilder, NewRecord, build_batch
from barnabas.records.columns_read import decode_columns
from barnabas.records.columns_write import encode_columns
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.decode import decode_batch
from barnabas.records.header import Codec, TimestampType, read_header, stamp
from barnabas.records.rebuild import rebuild_batch
from barnabas.records.record import Record
from barnabas.records.validate import check_produced, check_records
from support.our_client.real_clients import CLIENTS, WAIT_SECONDS_MAX, Client
from support.sample_records import LARGE_RECORDS, ODD_RECORDS, START_MS, from_columns, numbered, to_columns
from support.wire.capture_answers import HOST, PRODUCER_EPOCH, PRODUCER_ID
from support.wire.capture_broker import CaptureBroker
from support.wire.frames import frame

pytestmark = pytest.mark.kernel

TOPIC = "orders"
LARGE_BATCH_BYTES = 64 * 1024

each_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
each_codec = pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name.lower())


@pytest.fixture
def broker() -> Iterator[CaptureBroker]:
    with CaptureBroker({TOPIC: 1}) as broker:
        yield broker
    broker.check_exchanges()


def read_back(
    client: Client, broker: CaptureBroker, count: int, *, from_offset: int = 0, committed: bool = False
) -> list[Record]:
    seen = client.consume(broker.address, TOPIC, count=count, from_offset=from_offset, committed=committed)
    return [each.record for each in seen]


# ---- what they send


@each_codec
@each_client
def test_produced_batches_decode_to_the_sent_records(
    client: Client, codec: Codec, broker: CaptureBroker
) -> None:
    sent = [record for record in ODD_RECORDS if client.can_send(record)] + LARGE_RECORDS

    offsets = client.produce(broker.address, TOPIC, sent, codec=codec)

    log = broker.logs[TOPIC, 0]
    headers = [check_produced(batch) for batch in log.produced]
    facts = [check_records(batch) for batch in log.produced]
    stored = [batch for _, batch in log.batches]
    assert {header.codec for header in headers} == {codec}
    assert max(header.size for header in headers) > LARGE_BATCH_BYTES
    assert [fact.max_timestamp for fact in facts] == [header.max_timestamp for header in headers]
    assert [record for batch in stored for record in decode_batch(batch)] == numbered(sent)
    assert from_columns(decode_columns(stored)) == numbered(sent)
    assert offsets == list(range(len(sent)))


@each_client
def test_batches_of_an_idempotent_producer_follow_each_other(client: Client, broker: CaptureBroker) -> None:
    sent = LARGE_RECORDS * 3

    client.produce(broker.address, TOPIC, sent, idempotent=True)

    headers = [check_produced(batch) for batch in broker.logs[TOPIC, 0].produced]
    assert len(headers) > 1
    assert {header.producer_id for header in headers} == {PRODUCER_ID}
    assert {header.producer_epoch for header in headers} == {PRODUCER_EPOCH}
    assert headers[0].base_sequence == 0
    for before, after in pairwise(headers):
        assert after.base_sequence == before.last_sequence + 1
    assert headers[-1].last_sequence == len(sent) - 1


@each_client
def test_a_producer_that_wants_no_answer_gets_none(client: Client, broker: CaptureBroker) -> None:
    sent = LARGE_RECORDS[:10]

    client.produce(broker.address, TOPIC, sent, acks=0)

    broker.wait_for_offset(TOPIC, len(sent))
    [batch] = broker.logs[TOPIC, 0].produced
    assert decode_batch(batch) == numbered(sent)
    [produce] = [exchange for exchange in broker.exchanges if exchange.request.api.key is ApiKey.PRODUCE]
    assert produce.answer is None


# ---- what they read


@each_codec
@each_client
def test_a_client_reads_the_batches_that_we_build(
    client: Client, codec: Codec, broker: CaptureBroker
) -> None:
    filled = BatchBuilder(codec=codec)
    for record in LARGE_RECORDS:
        assert filled.append(*record)
    columns = encode_columns(to_columns(ODD_RECORDS + LARGE_RECORDS), codec=codec, batch_records=600)
    everything = ODD_RECORDS + LARGE_RECORDS + ODD_RECORDS + LARGE_RECORDS

    broker.append(TOPIC, build_batch(ODD_RECORDS, codec=codec), filled.build(), *columns)

    assert len(columns) == 2
    assert read_back(client, broker, len(everything)) == numbered(everything)


@each_codec
@each_client
def test_a_client_takes_the_time_of_the_append_from_the_batch(
    client: Client, codec: Codec, broker: CaptureBroker
) -> None:
    batch = bytearray(build_batch(ODD_RECORDS, codec=codec))
    stamp(batch, 0, base_offset=0, leader_epoch=0, log_append_time_ms=START_MS + 9999)
    expected = [(START_MS + 9999, *record[1:]) for record in ODD_RECORDS]

    broker.append(TOPIC, bytes(batch), build_batch(ODD_RECORDS, codec=codec))

    seen = client.consume(broker.address, TOPIC, count=2 * len(ODD_RECORDS), from_offset=0)
    assert {each.timestamp_type for each in seen[: len(expected)]} == {TimestampType.LOG_APPEND_TIME}
    assert {each.timestamp_type for each in seen[len(expected) :]} == {TimestampType.CREATE_TIME}
    assert [each.record for each in seen] == numbered(expected + ODD_RECORDS)


@each_codec
@each_client
def test_a_client_starts_in_the_middle_of_a_batch(
    client: Client, codec: Codec, broker: CaptureBroker
) -> None:
    broker.append(TOPIC, build_batch(LARGE_RECORDS, codec=codec), build_batch(ODD_RECORDS, codec=codec))

    found = read_back(client, broker, 10 + len(ODD_RECORDS), from_offset=990)

    assert found == numbered(LARGE_RECORDS + ODD_RECORDS)[990:]


@each_client
def test_a_client_reads_a_compacted_batch_with_holes(client: Client, broker: CaptureBroker) -> None:
    batch = build_batch(LARGE_RECORDS[:10], codec=Codec.ZSTD)
    kept = [record for record in numbered(LARGE_RECORDS[:10]) if record.offset in (2, 3, 7)]

    broker.append(TOPIC, rebuild_batch(read_header(batch), kept), build_batch(ODD_RECORDS))

    expected = kept + numbered(ODD_RECORDS, base_offset=10)
    assert read_back(client, broker, len(expected)) == expected


# ---- transactions


def transaction(kind: ControlType, records: Sequence[NewRecord], *, producer_id: int) -> list[bytes]:
    """The batch of a transactional producer and the marker that ends it."""
    batch = build_batch(
        records, producer_id=producer_id, producer_epoch=3, base_sequence=0, transactional=True
    )
    value = b"\x00\x00" + encode(EndTxnMarker(coordinator_epoch=1), 0)
    marker = build_control_batch(
        kind, value, timestamp=START_MS, leader_epoch=0, producer_id=producer_id, producer_epoch=3
    )
    return [batch, marker]


@pytest.mark.parametrize("committed", [True, False], ids=["read_committed", "read_uncommitted"])
@each_client
def test_a_client_passes_over_transaction_markers(
    client: Client, committed: bool, broker: CaptureBroker
) -> None:
    plain = build_batch(ODD_RECORDS, producer_id=8, producer_epoch=0, base_sequence=40)

    broker.append(TOPIC, *transaction(ControlType.COMMIT, LARGE_RECORDS[:5], producer_id=9), plain)

    found = read_back(client, broker, 5 + len(ODD_RECORDS), committed=committed)
    assert found == numbered(LARGE_RECORDS[:5]) + numbered(ODD_RECORDS, base_offset=6)


@each_client
def test_read_committed_does_not_return_an_aborted_transaction(client: Client, broker: CaptureBroker) -> None:
    aborted = transaction(ControlType.ABORT, LARGE_RECORDS[:5], producer_id=9)
    # The same producer's next transaction commits: the marker before it must have ended the abort.
    kept = transaction(ControlType.COMMIT, LARGE_RECORDS[5:8], producer_id=9)

    broker.append(TOPIC, *aborted, *kept, build_batch(ODD_RECORDS))
    broker.logs[TOPIC, 0].aborted = [(9, 0)]

    after = numbered(LARGE_RECORDS[5:8], base_offset=6) + numbered(ODD_RECORDS, base_offset=10)
    assert read_back(client, broker, len(after), committed=True) == after
    everything = numbered(LARGE_RECORDS[:5]) + after
    assert read_back(client, broker, len(everything), committed=False) == everything


# ---- the broker of these tests


def hangs_up(broker: CaptureBroker, data: bytes) -> bool:
    """Whether that is all the answer to `data`."""
    with socket.create_connection((HOST, broker.port), timeout=WAIT_SECONDS_MAX) as connection:
        connection.sendall(data)
        return connection.recv(1) == b""


def test_an_error_in_the_broker_fails_the_test() -> None:
    with pytest.RaisesGroup(Malformed), CaptureBroker({TOPIC: 1}) as broker:
        assert hangs_up(broker, frame([b"garbage"]))


def test_a_version_that_was_not_advertised_fails_the_test() -> None:
    asked = encode_request(MetadataRequest(), 9, key=ApiKey.METADATA, correlation_id=1, client_id=None)
    old = CaptureBroker({TOPIC: 1}, newest={ApiKey.METADATA: 8})

    with pytest.RaisesGroup(UnsupportedRequest), old:
        assert hangs_up(old, asked)
