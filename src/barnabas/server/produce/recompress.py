"""Recompress produced batches whose codec differs from the topic's compression.type."""

from functools import partial
from typing import Final

from barnabas.base.executor import Executor
from barnabas.records.header import ATTRIBUTES_AT, CODEC_BITS, HEADER_SIZE, Codec
from barnabas.records.recompress import recompress
from barnabas.storage.append_errors import BatchTooLarge
from barnabas.storage.config import LogConfig
from barnabas.storage.files import Buffer

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
    if len(batch) > config.max_message_bytes:
        raise BatchTooLarge(size=len(batch), limit=config.max_message_bytes, setting="max.message.bytes")
    codec = _CODECS[config.compression_type]
    return await executor.run(partial(recompress, batch, codec, _level(config, codec)))


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
