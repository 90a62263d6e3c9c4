"""Recompress a batch with another codec, without other changes.

For topics with a fixed compression.type. All records are checked first, because the new CRC would hide damage
that the producer's CRC still reveals.
"""

from barnabas.records.area import record_area
from barnabas.records.crc import ByteSource
from barnabas.records.header import CODEC_BITS, Codec, read_header
from barnabas.records.seal import seal
from barnabas.records.validate import check_produced, check_records


def recompress(data: ByteSource, codec: Codec, level: int | None = None) -> bytes:
    """Compress the one batch in `data` with `codec`. Malformed if a producer may not send it."""
    check_produced(data)
    check_records(data)
    header = read_header(data)
    area, start, end = record_area(data, 0, header)
    packed = header._replace(attributes=(header.attributes & ~CODEC_BITS) | codec)
    return seal(packed, bytes(area[start:end]), codec, level)
