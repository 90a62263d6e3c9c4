"""Damaged batches of every codec decode to a value or raise Malformed, never anything else."""

import random
import struct
from collections.abc import Callable

import pytest

from barnabas.base.errors import Malformed
from barnabas.records.builder import build_batch
from barnabas.records.codecs import compress, decompress
from barnabas.records.control import ControlType, build_control_batch, read_control_type
from barnabas.records.decode import decode_batch
from barnabas.records.errors import CorruptBatch
from barnabas.records.header import (
    ATTRIBUTES_AT,
    BATCH_LENGTH_AT,
    CRC_AT,
    HEADER_SIZE,
    Codec,
    batch_headers,
    crc32c_of,
    whole_batches,
)
from barnabas.records.record import Record
from barnabas.records.validate import check_batch, check_produced, check_records
from support.fuzz.mutations import Outcome, attack, attempts, mutate

pytestmark = pytest.mark.kernel

# Small, so that a damaged size field does not make the run slow.
LIMIT = 1 << 20


def records(count: int) -> list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]:
    rng = random.Random(count)
    return [
        (
            1_700_000_000_000 + i * 13,
            None if i % 5 == 0 else b"key-%d" % i,
            None if i % 7 == 3 else rng.randbytes(i % 40) * 2,
            [("trace", rng.randbytes(8)), ("ü", None)] if i % 3 == 0 else [],
        )
        for i in range(count)
    ]


def samples(codec: Codec) -> list[bytes]:
    plain = [build_batch(records(count), codec=codec) for count in (1, 3, 40)]
    idempotent = build_batch(
        records(5), codec=codec, producer_id=7, producer_epoch=1, base_sequence=2**31 - 3, transactional=True
    )
    return [*plain, idempotent]


def sign(data: bytes) -> bytes:
    """Correct length and CRC, so that the decoder gets to the damage after them."""
    if len(data) < HEADER_SIZE:
        return data
    whole = bytearray(data)
    struct.pack_into(">i", whole, BATCH_LENGTH_AT, len(whole) - 12)
    struct.pack_into(">I", whole, CRC_AT, crc32c_of(whole, ATTRIBUTES_AT, len(whole)))
    return bytes(whole)


def seen_both(outcome: Outcome) -> bool:
    return outcome.decoded > 0 and outcome.refused > 0


DECODERS: dict[str, Callable[[bytes], object]] = {
    "decode_batch": lambda data: decode_batch(data, limit=LIMIT),
    "check_records": lambda data: check_records(data, limit=LIMIT),
    "check_batch": check_batch,
    "check_produced": check_produced,
}


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("decoder", DECODERS)
def test_a_damaged_batch_with_corrected_length_and_crc_is_decoded_or_refused(
    codec: Codec, decoder: str
) -> None:
    outcome = attack(DECODERS[decoder], samples(codec), seed=codec, repair=sign)

    assert seen_both(outcome)


@pytest.mark.parametrize("codec", Codec)
def test_a_damaged_batch_is_decoded_or_refused(codec: Codec) -> None:
    outcome = attack(DECODERS["decode_batch"], samples(codec), seed=100 + codec)

    assert seen_both(outcome)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_damaged_compressed_stream_is_decompressed_within_the_limit_or_refused(codec: Codec) -> None:
    contents = [b"", b"a word, " * 30, random.Random(1).randbytes(300), bytes(100_000)]
    streams = [compress(codec, content) for content in contents]

    def unpack(data: bytes) -> None:
        assert len(decompress(codec, data, limit=LIMIT)) <= LIMIT

    assert seen_both(attack(unpack, streams, seed=codec))


def test_damaged_buffers_of_many_batches_are_walked_or_refused() -> None:
    buffers = [b"".join(samples(codec)) for codec in Codec]

    def walk(data: bytes) -> None:
        whole = whole_batches(data)
        assert whole.size <= len(data)
        assert len(list(batch_headers(data[: whole.size]))) == whole.batches

    assert seen_both(attack(walk, buffers, seed=5))


def test_damaged_control_batches_are_decoded_or_refused() -> None:
    batch = build_control_batch(
        ControlType.COMMIT, bytes(6), timestamp=1, leader_epoch=1, producer_id=3, producer_epoch=0
    )

    def read(data: bytes) -> None:
        for record in decode_batch(data, limit=LIMIT):
            read_control_type(record.key)

    assert seen_both(attack(read, [batch], seed=6, repair=sign))


def decode_unless_a_name_is_not_utf8(data: bytes) -> list[Record] | None:
    """Only a reader looks at header names."""
    try:
        return decode_batch(data, limit=LIMIT)
    except CorruptBatch as refused:
        if "not UTF-8" not in str(refused):
            raise
        return None


@pytest.mark.parametrize("codec", Codec)
def test_batches_accepted_by_the_deep_check_can_be_decoded(codec: Codec) -> None:
    whole = samples(codec)
    accepted = 0
    for attempt in range(attempts()):
        rng = random.Random(attempt)
        damaged = sign(mutate(rng, rng.choice(whole)))
        try:
            check_produced(damaged)
            facts = check_records(damaged, limit=LIMIT)
        except Malformed:
            continue
        decoded = decode_unless_a_name_is_not_utf8(damaged)
        if decoded is None:
            continue
        accepted += 1
        assert [record.offset for record in decoded] == list(range(len(decoded)))
        assert facts.max_timestamp == max(-1, *(record.timestamp for record in decoded))
        null_keys = [record.offset for record in decoded if record.key is None]
        assert facts.first_null_key == (null_keys[0] if null_keys else None)
    assert accepted > 0
