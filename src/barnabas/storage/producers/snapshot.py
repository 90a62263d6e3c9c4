"""The .snapshot files: what was known of a log's producers when it ended at the offset in the name.

    version int16 | CRC-32C of the rest, uint32 | count int32 | count entries of 46 bytes

Of a producer's batches only the last one is kept. A snapshot can always be made anew from the log, so one
that is not wholly plausible is not believed.
"""

from struct import Struct
from typing import Final

from barnabas.records.crc import crc32c_of
from barnabas.storage.errors import CorruptFile
from barnabas.storage.producers.table import ProducerEntry, Producers

VERSION: Final = 1

_HEAD: Final = Struct(">hIi")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_CRC_FROM: Final = _HEAD.size - _COUNT.size


def _in_kafkas_order(entries: list[ProducerEntry]) -> list[ProducerEntry]:
    """In the order of a Java hash map that these ids were put into one after the other.

    No reader depends on it. It makes our files equal to Kafka's, except where Kafka's map had been larger
    once, or has so many ids in one place that it keeps them in a tree.
    """
    places = 16
    while len(entries) > places * 3 // 4:
        places *= 2

    def place(entry: ProducerEntry) -> int:
        mixed = (entry.producer_id ^ entry.producer_id >> 32) & 0xFFFFFFFF
        return (mixed ^ mixed >> 16) & places - 1

    return sorted(entries, key=place)


def write_snapshot(producers: Producers) -> bytes:
    """The file for the state as it is now, byte for byte as Kafka writes it."""
    entries = _in_kafkas_order(producers.entries())
    body = _COUNT.pack(len(entries)) + b"".join([_ENTRY.pack(*entry) for entry in entries])
    head = _HEAD.pack(VERSION, crc32c_of(body, 0, len(body)), len(entries))
    return head + body[_COUNT.size :]


# Most logs have no producers, and a broker opens thousands of logs.
_EMPTY: Final = write_snapshot(Producers())


def read_snapshot(data: bytes, path: str, end_offset: int) -> Producers:
    """The producers of a log that ends at `end_offset`; CorruptFile if they can not be."""
    producers = Producers()
    if data == _EMPTY:
        producers.end_offset = end_offset
        return producers
    if len(data) < _HEAD.size:
        raise CorruptFile(path, f"{len(data)} bytes are too few for a snapshot")
    version, crc, count = _HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptFile(path, f"version {version} is not {VERSION}")
    found = crc32c_of(data, _CRC_FROM, len(data))
    if found != crc:
        raise CorruptFile(path, f"CRC is {found:#010x}, the file says {crc:#010x}")
    if len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptFile(path, f"{count} producers do not take {len(data)} bytes")
    entries = [ProducerEntry._make(fields) for fields in _ENTRY.iter_unpack(data[_HEAD.size :])]
    _check_plausible(entries, path, end_offset)
    producers.load(entries, end_offset)
    return producers


def _check_plausible(entries: list[ProducerEntry], path: str, end_offset: int) -> None:
    for entry in entries:
        if entry.producer_id < 0:
            raise CorruptFile(path, f"producer id {entry.producer_id}")
        if max(entry.last_offset, entry.txn_first_offset) >= end_offset:
            raise CorruptFile(path, f"{entry} is not below the end offset {end_offset}")
        if entry.last_offset >= 0 and not 0 <= entry.offset_delta <= entry.last_offset:
            raise CorruptFile(path, f"{entry} has a batch that begins before the log")
    if len({entry.producer_id for entry in entries}) != len(entries):
        raise CorruptFile(path, "a producer is in it twice")
    begun = [entry.txn_first_offset for entry in entries if entry.txn_first_offset >= 0]
    if len(set(begun)) != len(begun):
        raise CorruptFile(path, "two transactions begin at one offset")
