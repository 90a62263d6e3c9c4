"""The .snapshot files: the producer state of a log up to the offset in the file name.

    version int16 | CRC-32C of the rest, uint32 | count int32 | count entries of 46 bytes

A snapshot has only the last batch of each producer. It can always be rebuilt from the log, so any implausible
snapshot is rejected.
"""

from struct import Struct
from typing import Final

from barnabas.records.header import crc32c_of
from barnabas.storage.errors import CorruptFile
from barnabas.storage.producers.table import ProducerEntry, Producers

VERSION: Final = 1

_HEAD: Final = Struct(">hIi")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_CRC_FROM: Final = _HEAD.size - _COUNT.size


def _in_kafkas_order(entries: list[ProducerEntry]) -> list[ProducerEntry]:
    """Sort the entries as a Java HashMap would iterate after inserting them in order.

    No reader depends on the order. It makes our files equal to Kafka's, except where Kafka's map was larger
    before, or a bucket has so many ids that it became a tree.
    """
    places = 16
    while len(entries) > places * 3 // 4:
        places *= 2

    def place(entry: ProducerEntry) -> int:
        mixed = (entry.producer_id ^ entry.producer_id >> 32) & 0xFFFFFFFF
        return (mixed ^ mixed >> 16) & places - 1

    return sorted(entries, key=place)


def write_snapshot(producers: Producers) -> bytes:
    """Encode the current state, byte for byte as Kafka does."""
    entries = _in_kafkas_order(producers.entries())
    body = _COUNT.pack(len(entries)) + b"".join([_ENTRY.pack(*entry) for entry in entries])
    head = _HEAD.pack(VERSION, crc32c_of(body, 0, len(body)), len(entries))
    return head + body[_COUNT.size :]


# Cached, because most logs have no producers and a broker opens thousands of logs.
_EMPTY: Final = write_snapshot(Producers())


def read_snapshot(data: bytes, path: str, end_offset: int) -> Producers:
    """Parse the producer state up to `end_offset`; CorruptFile if it is implausible."""
    producers = Producers()
    if data == _EMPTY:
        producers.end_offset = end_offset
        return producers
    if len(data) < _HEAD.size:
        raise CorruptFile(path, f"file has {len(data)} bytes, a snapshot has at least {_HEAD.size}")
    version, crc, count = _HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptFile(path, f"version is {version}, expected {VERSION}")
    found = crc32c_of(data, _CRC_FROM, len(data))
    if found != crc:
        raise CorruptFile(path, f"CRC is {found:#010x}, header says {crc:#010x}")
    if len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptFile(path, f"{count} producers do not match the file size of {len(data)} bytes")
    entries = [ProducerEntry._make(fields) for fields in _ENTRY.iter_unpack(data[_HEAD.size :])]
    _check_plausible(entries, path, end_offset)
    producers.load(entries, end_offset)
    return producers


def _check_plausible(entries: list[ProducerEntry], path: str, end_offset: int) -> None:
    for entry in entries:
        if entry.producer_id < 0:
            raise CorruptFile(path, f"producer id {entry.producer_id} is negative")
        if max(entry.last_offset, entry.txn_first_offset) >= end_offset:
            raise CorruptFile(path, f"{entry} is not below the end offset {end_offset}")
        if entry.last_offset >= 0 and not 0 <= entry.offset_delta <= entry.last_offset:
            raise CorruptFile(path, f"{entry} has a batch that begins below offset 0")
    if len({entry.producer_id for entry in entries}) != len(entries):
        raise CorruptFile(path, "a producer id occurs twice")
    begun = [entry.txn_first_offset for entry in entries if entry.txn_first_offset >= 0]
    if len(set(begun)) != len(begun):
        raise CorruptFile(path, "two transactions begin at one offset")
