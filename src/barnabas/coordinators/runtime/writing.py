"""From the records of an Outcome to batches. Pure."""

from collections.abc import Iterable

from barnabas.base.errors import BarnabasError
from barnabas.coordinators.group.outcome import Record
from barnabas.records.builder import BatchBuilder
from barnabas.records.header import Codec


class TooLarge(BarnabasError):
    """Records that belong together do not fit into one batch of the log."""


def batches(
    records: Iterable[Record], *, now_ms: int, bytes_max: int, codec: Codec, together: bool
) -> list[bytes]:
    """One batch, or as many as it takes if the records need not be written `together`.

    A batch is on the disk as a whole or not at all. TooLarge if there is no way.
    """
    built = []
    builder = _builder(bytes_max, codec)
    for record in records:
        key, value = record.encoded()
        if not builder.append(now_ms, key, value):
            if together:
                raise TooLarge(f"records that belong together are more than {bytes_max} bytes")
            built.append(builder.build())
            builder = _builder(bytes_max, codec)
            builder.append(now_ms, key, value)
        if builder.size > bytes_max:
            # The first record of a batch is always taken.
            raise TooLarge(f"a record of {builder.size} bytes, and the log takes {bytes_max}")
    built.append(builder.build())
    return built


def _builder(bytes_max: int, codec: Codec) -> BatchBuilder:
    return BatchBuilder(max_bytes=bytes_max, codec=codec)
