"""Splits a batch that the broker found too large. Pure."""

from barnabas.client.producer.batch import Batch
from barnabas.records.builder import BatchBuilder
from barnabas.records.codecs import MAX_DECOMPRESSED
from barnabas.records.decode import decode_batch
from barnabas.records.header import HEADER_SIZE, Codec
from barnabas.records.record import Record


def split_batch(
    batch: Batch, *, batch_size: int, codec: Codec, level: int | None, transactional: bool = False
) -> list[Batch]:
    """Split into two or more batches of at most batch.size and half the uncompressed size."""
    assert batch.count > 1, "a batch of one record cannot be split"
    assert batch.data is not None, "only a sent batch is split"
    records = decode_batch(batch.data)
    (whole,) = _filled(records, MAX_DECOMPRESSED, Codec.NONE, None, transactional)
    limit = min(batch_size, HEADER_SIZE + (whole.size - HEADER_SIZE) // 2)
    return [_part(batch, builder) for builder in _filled(records, limit, codec, level, transactional)]


def _filled(
    records: list[Record], limit: int, codec: Codec, level: int | None, transactional: bool
) -> list[BatchBuilder]:
    builders: list[BatchBuilder] = []
    for record in records:
        if not builders or not builders[-1].append(
            record.timestamp, record.key, record.value, record.headers
        ):
            builders.append(
                BatchBuilder(max_bytes=limit, codec=codec, level=level, transactional=transactional)
            )
            builders[-1].append(record.timestamp, record.key, record.value, record.headers)
    return builders


def _part(batch: Batch, builder: BatchBuilder) -> Batch:
    part = Batch(batch.queue, data=builder.build())
    part.count = builder.count
    part.attempts = batch.attempts
    part.maybe_written = batch.maybe_written
    part.last_error = batch.last_error
    return part
