"""Fast loading of commits from a log, which may have millions (compiled).

scan() validates a whole batch without changing the table. Then store() writes its commits to the table, or
commits() returns them. The only objects created per record are its key and a value that is not plain.
"""

from typing import Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from librt.vecs import append, vec
from mypy_extensions import i64

from barnabas.base.errors import Malformed
from barnabas.coordinators.group.offsets.record import (
    LAST_VERSION,
    NOT_PLAIN,
    is_utf8,
    plain_form,
    string_end,
    value_fault,
)
from barnabas.coordinators.group.offsets.table import GroupOffsets, OffsetTable
from barnabas.records.area import MIN_RECORD_SIZE, NULL
from barnabas.records.codecs import decompress
from barnabas.records.decode import BAD, read_varint
from barnabas.records.errors import CorruptBatch, UnknownCodec, UnsupportedMagic
from barnabas.records.header import (
    ATTRIBUTES_AT,
    BATCH_LENGTH_AT,
    CODEC_BITS,
    CODECS,
    CONTROL_BIT,
    COUNT_AT,
    LENGTH_EXCLUDES,
    MAGIC,
    MAGIC_AT,
    PRODUCER_ID_AT,
    RECORDS_AT,
)

# Key types of commits: the first releases wrote 0, all others 1.
LEGACY_COMMIT: Final = 0
COMMIT: Final = 1
PARTITION_SIZE: Final = 4

# Words per commit: position of its partition, start and end of its value. The end is NULL for a tombstone.
SPAN_WORDS: Final = 3
# Maximum number of cached group and topic lookups. Most commits belong to a few.
PLACES_MAX: Final = 8192


class Place:
    """A cached lookup of a group and topic."""

    def __init__(self, offsets: GroupOffsets, topic: i64) -> None:
        self.offsets = offsets
        self.topic: i64 = topic


class Loader:
    """Holds the last scanned batch. `others` are its records that are not commits, as key and value."""

    def __init__(self, table: OffsetTable) -> None:
        self._table = table
        self._places: dict[bytes, Place | None] = {}
        self._dropped: i64 = 0
        self._area = b""
        self._start: i64 = 0
        self._stop: i64 = 0
        self._count: i64 = 0
        self._index: i64 = 0
        self._names: list[bytes] = []
        self._spans = vec[i64]()
        self.base_offset: i64 = 0
        self.producer_id: i64 = NULL
        self.is_control = False
        self.others: list[tuple[bytes, bytes | None]] = []

    def forget(self) -> None:
        """Loading is complete: release the last batch and the caches."""
        self._places = {}
        self._names = []
        self._area = b""
        self.others = []

    def scan(self, batch: bytes) -> None:
        """Read one whole batch. Malformed if it or a commit in it is invalid.

        Does not check the CRC, which the log reader has checked, nor record headers.
        """
        if len(self._places) > PLACES_MAX or self._dropped != self._table.dropped:
            self._forget_dropped()
        self._names = []
        self._spans = vec[i64]()
        self.others = []
        self._open(batch)
        area = self._area
        at: i64 = self._start
        self._index = 0
        while self._index < self._count:
            size, body = read_varint(area, at, self._stop)
            if body == BAD or size < MIN_RECORD_SIZE - 1 or size > self._stop - body:
                raise self._bad(f"record length {size} does not fit in the batch")
            at = body + size
            self._read_record(area, body, at)
            self._index += 1
        if at != self._stop:
            raise self._bad(f"{self._stop - at} bytes after the last record")

    def store(self) -> None:
        """Apply the commits and tombstones to the table."""
        table = self._table
        places = self._places
        area = self._area
        spans = self._spans
        at: i64 = 0
        for name in self._names:
            partition: i64 = i64(read_i32_be(area, spans[at]))
            value_at: i64 = spans[at + 1]
            value_end: i64 = spans[at + 2]
            at += SPAN_WORDS
            if value_end == NULL:
                group, topic = split_name(name)
                table.remove(group, topic, partition)
                if self._dropped != table.dropped:
                    self._forget_dropped()
                continue
            place = places.get(name)
            if place is None:
                place = places[name] = self._find_place(name)
            table.put_slice(place.offsets, place.topic, partition, area, value_at, value_end)

    def commits(self) -> list[tuple[str, str, int, bytes | None]]:
        """Group, topic, partition and value of every commit; None is a tombstone."""
        area = self._area
        spans = self._spans
        at: i64 = 0
        found: list[tuple[str, str, int, bytes | None]] = []
        for name in self._names:
            group, topic = split_name(name)
            partition: i64 = i64(read_i32_be(area, spans[at]))
            value_end: i64 = spans[at + 2]
            value = None if value_end == NULL else area[spans[at + 1] : value_end]
            found.append((group, topic, partition, value))
            at += SPAN_WORDS
        return found

    def _find_place(self, name: bytes) -> Place:
        group, topic = split_name(name)
        return Place(self._table.offsets_of(group), self._table.topics.take(topic))

    def _forget_dropped(self) -> None:
        self._places.clear()
        self._dropped = self._table.dropped

    def _open(self, batch: bytes) -> None:
        """Read the header and find the records."""
        size: i64 = len(batch)
        self.base_offset = NULL
        self._count = 0
        if size < RECORDS_AT:
            raise CorruptBatch(f"batch size {size} is less than the header size {RECORDS_AT}", where="batch")
        self.base_offset = read_i64_be(batch, 0)
        if batch[MAGIC_AT] != MAGIC:
            raise UnsupportedMagic(f"magic is {batch[MAGIC_AT]}, expected {MAGIC}", where=self._where())
        claimed: i64 = LENGTH_EXCLUDES + i64(read_i32_be(batch, BATCH_LENGTH_AT))
        if claimed != size:
            raise CorruptBatch(f"header says {claimed} bytes, batch has {size}", where=self._where())
        attributes: i64 = i64(read_i16_be(batch, ATTRIBUTES_AT))
        self.is_control = attributes & CONTROL_BIT != 0
        self.producer_id = read_i64_be(batch, PRODUCER_ID_AT)
        self._area = batch
        self._start = RECORDS_AT
        self._stop = size
        codec: i64 = attributes & CODEC_BITS
        # Compaction leaves batches without records, whose area is empty whatever their codec is.
        if codec != 0 and size > RECORDS_AT:
            if codec >= len(CODECS):
                raise UnknownCodec(f"unknown compression codec {codec}", where=self._where())
            self._area = decompress(CODECS[codec], memoryview(batch)[RECORDS_AT:])
            self._start = 0
            self._stop = len(self._area)
        count: i64 = i64(read_i32_be(batch, COUNT_AT))
        if count < 0 or count * MIN_RECORD_SIZE > self._stop - self._start:
            raise CorruptBatch(
                f"record count {count} does not fit in {self._stop - self._start} bytes", where=self._where()
            )
        self._count = count

    def _read_record(self, area: bytes, at: i64, stop: i64) -> None:
        _, at = read_varint(area, at + 1, stop)
        if at != BAD:
            _, at = read_varint(area, at, stop)
        if at == BAD:
            raise self._bad("record timestamp or offset is truncated")
        key_size, key_at = read_varint(area, at, stop)
        if key_at == BAD or key_size < NULL or key_size > stop - key_at:
            raise self._bad(f"key length {key_size} is out of range")
        key_end: i64 = key_at
        if key_size > 0:
            key_end += key_size
        value_size, value_at = read_varint(area, key_end, stop)
        if value_at == BAD or value_size < NULL or value_size > stop - value_at:
            raise self._bad(f"value length {value_size} is out of range")
        if key_end - key_at < 2:
            raise self._bad("key has no type")
        kind: i64 = i64(read_i16_be(area, key_at))
        if not self.is_control and LEGACY_COMMIT <= kind <= COMMIT:
            version: i64 = self._version(area, value_at, value_size)
            if version <= (LAST_VERSION if kind == COMMIT else 0):
                self._read_commit(area, key_at + 2, key_end, value_at, value_size, version)
                return
        value: bytes | None = None
        if value_size != NULL:
            value = area[value_at : value_at + value_size]
        self.others.append((area[key_at:key_end], value))

    def _version(self, area: bytes, at: i64, size: i64) -> i64:
        """The version of a value; -1 without a value."""
        if size == NULL:
            return NULL
        if size < 2:
            raise self._bad("value has no version")
        version: i64 = i64(read_i16_be(area, at))
        # A negative version is treated like one that is too high: as unknown.
        return version if version >= 0 else LAST_VERSION + 1

    def _read_commit(
        self, area: bytes, at: i64, end: i64, value_at: i64, value_size: i64, version: i64
    ) -> None:
        topic_at: i64 = string_end(area, at, end)
        partition_at: i64 = BAD if topic_at == BAD else string_end(area, topic_at, end)
        if partition_at == BAD or end - partition_at < PARTITION_SIZE:
            raise self._bad("key is truncated, or its group or topic is null")
        name = area[at:partition_at]
        if name not in self._places:
            group, topic = name_parts(name)
            if not is_utf8(group) or not is_utf8(topic):
                raise self._bad("group or topic in the key is not UTF-8")
            # Marks the name as valid; store() looks it up.
            self._places[name] = None
        # A plain value is always valid.
        if value_size != NULL and plain_form(area, value_at, value_at + value_size) == NOT_PLAIN:
            fault = value_fault(area, value_at + 2, value_at + value_size, version)
            if fault:
                raise self._bad(fault)
        self._names.append(name)
        spans = append(self._spans, partition_at)
        spans = append(spans, value_at)
        self._spans = append(spans, NULL if value_size == NULL else value_at + value_size)

    def _bad(self, what: str) -> Malformed:
        return Malformed(what, where=f"{self._where()}, record {self._index}")

    def _where(self) -> str:
        return f"batch with base offset {self.base_offset}"


def name_parts(name: bytes) -> tuple[bytes, bytes]:
    """Split length-prefixed group and topic."""
    topic_at: i64 = 2 + i64(read_i16_be(name, 0))
    return name[2:topic_at], name[topic_at + 2 :]


def split_name(name: bytes) -> tuple[str, str]:
    group, topic = name_parts(name)
    return group.decode(), topic.decode()
