"""Recompress produced batches whose codec differs from the topic's compression.type."""

from functools import partial
from typing import Final

from barnabas.base.executor import Executor
from barnabas.records.area import record_area
from barnabas.records.builder import seal
from barnabas.records.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    HEADER_SIZE,
    Codec,
    crc32c_of,
    read_header,
    stamp,
)
from barnabas.records.validate import check_produced, check_records
from barnabas.storage.config import LogConfig
from barnabas.storage.errors import BatchTooLarge
from barnabas.storage.files import Buffer
from barnabas.storage.intake import Batch, compare_with_records

AS_PRODUCED: Final = "producer"
_CODECS: Final = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


def needs_recompression(config: LogConfig, batch: Buffer | None) -> bool:
    """Whether a batch must be recompressed. Incomplete batches are left to later checks."""
    if config.compression_type == AS_PRODUCED or batch is None or len(batch) < HEADER_SIZE:
        return False
    return batch[ATTRIBUTES_AT + 1] & CODEC_BITS != _CODECS[config.compression_type]


async def recompressed(executor: Executor, config: LogConfig, batch: Buffer) -> bytes:
    """Return the batch in the topic's codec. Malformed or BatchTooLarge if it may not be stored."""
    if batch[ATTRIBUTES_AT + 1] & CODEC_BITS == Codec.NONE:
        batch = _compared(batch)
    if len(batch) > config.max_message_bytes:
        raise BatchTooLarge(size=len(batch), limit=config.max_message_bytes, setting="max.message.bytes")
    codec = _CODECS[config.compression_type]
    return await executor.run(partial(_recompress, batch, codec, _level(config, codec)))


def _compared(data: Buffer) -> Buffer:
    """The uncompressed batch with a correct max timestamp. One with a wrong CRC is returned unchanged."""
    batch = Batch(data, 0)
    compare_with_records(batch, data, data, 0)
    if not batch.is_corrected or crc32c_of(data, ATTRIBUTES_AT, len(data)) != batch.crc:
        return data
    copy = bytearray(data)
    stamp(
        copy,
        0,
        base_offset=batch.base_offset,
        leader_epoch=batch.leader_epoch,
        max_timestamp=batch.max_timestamp,
    )
    return copy


def _recompress(data: Buffer, codec: Codec, level: int | None) -> bytes:
    """Compress the batch with `codec`. Malformed if a producer may not send it.

    All records are checked first, because the new CRC would hide damage that the producer's CRC reveals.
    """
    check_produced(data)
    check_records(data)
    header = read_header(data)
    area, start, end = record_area(data, 0, header)
    packed = header._replace(attributes=(header.attributes & ~CODEC_BITS) | codec)
    return seal(packed, bytes(area[start:end]), codec, level)


def _level(config: LogConfig, codec: Codec) -> int | None:
    match codec:
        case Codec.GZIP:
            return config.compression_gzip_level
        case Codec.LZ4:
            return config.compression_lz4_level
        case Codec.ZSTD:
            return config.compression_zstd_level
        case Codec.NONE | Codec.SNAPPY:
            return None
