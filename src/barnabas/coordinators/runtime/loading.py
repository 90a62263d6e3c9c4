"""Loading of a shard: replays its log off the loop, before the shard is used."""

import logging
from functools import partial
from typing import Final

from barnabas.base.clock import Clock
from barnabas.base.crc32c import crc32c
from barnabas.base.executor import Executor
from barnabas.coordinators.runtime.ports import LedPartition, Shard
from barnabas.records.errors import CorruptBatch
from barnabas.records.header import ATTRIBUTES_AT, BASE_OFFSET_AT, BATCH_LENGTH_AT, CRC_AT, LENGTH_EXCLUDES

logger = logging.getLogger(__name__)


async def load(
    partition: LedPartition, shard: Shard, executor: Executor, clock: Clock, *, bytes_at_once: int
) -> None:
    """Replay the whole log. BarnabasError if it cannot be read."""
    began_ms = clock.monotonic_ms()
    offset, end = partition.start_offset, partition.end_offset
    total = 0
    while offset < end:
        data, offset_after = await partition.read(offset, bytes_at_once)
        if not data:
            # The log ends with a gap left by compaction.
            break
        total += len(data)
        await executor.run(partial(_replay, shard, data))
        offset = offset_after
    logger.info(
        "shard loaded partition=%s count=%d bytes=%d ms=%d",
        partition.name,
        len(shard),
        total,
        clock.monotonic_ms() - began_ms,
    )


_LENGTH_SIZE: Final = 4


def _replay(shard: Shard, data: bytes) -> None:
    at = 0
    while at < len(data):
        length_at = at + BATCH_LENGTH_AT
        size = LENGTH_EXCLUDES + int.from_bytes(data[length_at : length_at + _LENGTH_SIZE], "big")
        batch = data[at : at + size]
        _check_crc(batch)
        shard.replay(batch)
        at += size


def _check_crc(batch: bytes) -> None:
    """Corrupt data on the disk must not be loaded as committed offsets."""
    stored = int.from_bytes(batch[CRC_AT:ATTRIBUTES_AT], "big")
    if crc32c(memoryview(batch)[ATTRIBUTES_AT:]) != stored:
        offset = int.from_bytes(batch[BASE_OFFSET_AT:BATCH_LENGTH_AT], "big")
        raise CorruptBatch("CRC mismatch", where=f"batch at offset {offset}")
