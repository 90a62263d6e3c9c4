"""A batch with its records packed another way; nothing else about it changes.

For topics that say how their batches are stored. What a producer sent is checked to the last record on the
way, because its CRC is replaced by ours, and from then on nobody could tell what was wrong before.
"""

from barnabas.records.area import record_area
from barnabas.records.crc import ByteSource
from barnabas.records.header import CODEC_BITS, Codec, read_header
from barnabas.records.seal import seal
from barnabas.records.validate import check_produced, check_records


def recompress(data: ByteSource, codec: Codec, level: int | None = None) -> bytes:
    """The one batch in `data`, compressed with `codec`. Malformed if a producer may not send it."""
    check_produced(data)
    check_records(data)
    header = read_header(data)
    area, start, end = record_area(data, 0, header)
    packed = header._replace(attributes=(header.attributes & ~CODEC_BITS) | codec)
    return seal(packed, bytes(area[start:end]), codec, level)
