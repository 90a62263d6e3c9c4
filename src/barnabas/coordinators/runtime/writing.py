"""From the records of an Outcome to batches. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.coordinators.group.outcome import Record
from barnabas.records.builder import BatchBuilder
from barnabas.records.header import Codec

# Of a record, at most, besides its key and its value: lengths, attributes, time, offset, count of headers.
_FRAME_BYTES_MAX: Final = 36


class TooLarge(BarnabasError):
    """Records that belong together do not fit into one batch of the log."""


class Gathered:
    """Outcomes that are written as one batch. Each is in it as a whole or not at all."""

    def __init__(self, *, bytes_max: int, codec: Codec) -> None:
        self._bytes_max = bytes_max
        self._builder: Final = _builder(bytes_max, codec)
        self.outcomes = 0

    def add(self, records: Sequence[Record], now_ms: int) -> bool:
        """False, and nothing has happened, if they may not fit behind what there is.

        TooLarge if they do not fit into a batch of their own.
        """
        builder = self._builder
        encoded = [record.encoded() for record in records]
        if builder.count:
            size = builder.size
            for key, value in encoded:
                size += len(key) + (0 if value is None else len(value)) + _FRAME_BYTES_MAX
            if size > self._bytes_max:
                return False
        for key, value in encoded:
            if not builder.append(now_ms, key, value):
                raise TooLarge(f"records that belong together are more than {self._bytes_max} bytes")
        _check_size(builder, self._bytes_max)
        self.outcomes += 1
        return True

    def build(self) -> bytes:
        return self._builder.build()


def one_batch(records: Sequence[Record], *, now_ms: int, bytes_max: int, codec: Codec) -> bytes:
    """All of them in one batch. TooLarge if there is no way."""
    batch = Gathered(bytes_max=bytes_max, codec=codec)
    batch.add(records, now_ms)
    return batch.build()


def batches(records: Iterable[Record], *, now_ms: int, bytes_max: int, codec: Codec) -> list[bytes]:
    """As many batches as it takes, for records that need not be written together.

    A batch is on the disk as a whole or not at all. TooLarge if a single record is.
    """
    built = []
    builder = _builder(bytes_max, codec)
    for record in records:
        key, value = record.encoded()
        if not builder.append(now_ms, key, value):
            built.append(builder.build())
            builder = _builder(bytes_max, codec)
            builder.append(now_ms, key, value)
        _check_size(builder, bytes_max)
    built.append(builder.build())
    return built


def _check_size(builder: BatchBuilder, bytes_max: int) -> None:
    """The first record of a batch is always taken."""
    if builder.size > bytes_max:
        raise TooLarge(f"a record of {builder.size} bytes, and the log takes {bytes_max}")


def _builder(bytes_max: int, codec: Codec) -> BatchBuilder:
    return BatchBuilder(max_bytes=bytes_max, codec=codec)
