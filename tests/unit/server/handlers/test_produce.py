"""Produce: errors of refused batches."""

from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.builder import build_batch
from barnabas.records.header import ATTRIBUTES_AT, CRC_AT, Codec, crc32c_of
from barnabas.server.handlers.produce import API, RECORD_ERRORS_MAX
from support.hosted import Hosted, one_topic
from support.log.managers import on_a_loop
from support.wire.requests import produce_of, produced

TOO_LATE_MS = 4_000_000_000_000


def too_late(count: int, codec: Codec = Codec.NONE) -> bytes:
    return build_batch([(TOO_LATE_MS, None, b"v", ())] * count, codec=codec)


async def refused(broker: Hosted, data: bytes) -> tuple[int, int]:
    """The error, and how many records it names."""
    answer = produced(await broker.ask(API, produce_of("orders", 0, data, acks=-1), 9))
    return answer.error_code, len(answer.record_errors)


@on_a_loop
async def test_record_errors_are_limited() -> None:
    broker = await one_topic()

    assert await refused(broker, too_late(3)) == (ErrorCode.INVALID_TIMESTAMP, 3)
    assert await refused(broker, too_late(50_000, Codec.GZIP)) == (
        ErrorCode.INVALID_TIMESTAMP,
        RECORD_ERRORS_MAX,
    )


@on_a_loop
async def test_a_batch_with_invalid_timestamps_that_cannot_be_decompressed_is_corrupt() -> None:
    broker = await one_topic()
    damaged = bytearray(too_late(3, Codec.GZIP))
    damaged[-12:] = bytes(12)
    damaged[CRC_AT : CRC_AT + 4] = crc32c_of(damaged, ATTRIBUTES_AT, len(damaged)).to_bytes(4, "big")

    assert await refused(broker, bytes(damaged)) == (ErrorCode.CORRUPT_MESSAGE, 0)
