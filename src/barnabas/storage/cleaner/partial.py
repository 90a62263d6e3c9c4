"""Rewrite a batch of which only some records stay (compiled). Their bytes are copied, not re-encoded.

Only the length, the CRC, the record count and the max timestamp of the header change. Base offset and last
offset stay even when the first or the last record is gone: the producer's last sequence follows from them.
"""

from typing import Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from librt.vecs import vec
from mypy_extensions import i32, i64, u8

from barnabas.base.crc32c import crc32c
from barnabas.records.codecs import compress
from barnabas.records.header import (
    ATTRIBUTES_AT,
    BATCH_LENGTH_AT,
    CODEC_BITS,
    CODECS,
    COUNT_AT,
    CRC_AT,
    LEADER_EPOCH_AT,
    MAX_TIMESTAMP_AT,
    MIN_BATCH_LENGTH,
    PRODUCER_ID_AT,
)
from barnabas.storage.cleaner.batch import Batch, Cursor

# Calling an imported function costs a look-up each time, calling a Final does not.
crc_of: Final = crc32c


def keep_in_part(batch: Batch, cursor: Cursor, stays: vec[u8], count: i64, max_timestamp: i64) -> bytes:
    """Build a batch of the `count` records of `batch` that stay."""
    area = b"".join(runs(batch, cursor, stays))
    codec: i64 = batch.attributes & CODEC_BITS
    if codec != 0:
        area = compress(CODECS[codec], area)
    data = batch.data
    at: i64 = batch.at
    signed = BytesWriter()
    signed.write(data[at + ATTRIBUTES_AT : at + MAX_TIMESTAMP_AT])
    write_i64_be(signed, max_timestamp)
    signed.write(data[at + PRODUCER_ID_AT : at + COUNT_AT])
    write_i32_be(signed, i32(count))
    tail = signed.getvalue()
    crc: i64 = crc_of(area, crc_of(tail))
    # The same 32 bits as a signed number.
    if crc >= 0x80000000:
        crc -= 0x100000000
    head = BytesWriter()
    head.write(data[at : at + BATCH_LENGTH_AT])
    write_i32_be(head, i32(MIN_BATCH_LENGTH + len(area)))
    head.write(data[at + LEADER_EPOCH_AT : at + CRC_AT])
    write_i32_be(head, i32(crc))
    return b"".join((head.getvalue(), tail, area))


def runs(batch: Batch, cursor: Cursor, stays: vec[u8]) -> list[bytes]:
    """The bytes of the records that stay, adjacent ones joined."""
    found: list[bytes] = []
    area = batch.area
    start: i64 = batch.start
    end: i64 = batch.start
    index: i64 = 0
    cursor.begin(batch)
    while cursor.next():
        if stays[index] != 0:
            if cursor.start != end:
                if start < end:
                    found.append(area[start:end])
                start = cursor.start
            end = cursor.stop
        index += 1
    if start < end:
        found.append(area[start:end])
    return found
