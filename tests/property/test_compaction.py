"""Random logs, compacted repeatedly while they grow, compared with a dictionary.

Remaining records are unchanged, the last committed value of every key remains, a tombstone is removed only
after its delete horizon, and a read_committed reader never gets aborted records.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.records.builder import NewRecord, build_batch
from barnabas.records.control import ControlType, read_control_type
from barnabas.records.decode import decode_batch
from barnabas.records.header import Codec, TimestampType, batch_headers, read_header
from barnabas.records.record import Record
from barnabas.storage.cleaner.key_map import SLOT_SIZE
from barnabas.storage.cleaner.pick import DirtyLog, DirtySegment, weigh
from barnabas.storage.config import LogConfig
from barnabas.storage.names import LOG, TXN_INDEX, file_name
from barnabas.storage.producers.table import LastRecord
from barnabas.storage.segment.txn_index import AbortedTxn, read_entries
from support.log.compaction import (
    DIRECTORY,
    NOW_MS,
    Setup,
    bases,
    clean_and_swap,
    marker,
    new_disk,
    read_headers,
    read_records,
    write_segment,
)

pytestmark = pytest.mark.kernel

RETENTION_MS = 1000
CONFIG = LogConfig.parse({"cleanup.policy": "compact"})
KEYS = [b"%d" % number for number in range(12)]
PRODUCERS = range(4)
BATCH_RECORDS_MAX = 4


@dataclass
class Producer:
    sequence: int = 0
    last_data_offset: int | None = None
    # The first offset of its open transaction.
    open_from: int | None = None


@dataclass
class World:
    """A log on a simulated disk, and everything that was ever written to it."""

    now_ms: int = NOW_MS
    next_offset: int = 0
    active_base: int = 0
    active: list[bytes] = field(default_factory=list)
    active_aborted: list[AbortedTxn] = field(default_factory=list)
    checkpoint: int = 0
    producers: dict[int, Producer] = field(default_factory=dict)
    written: dict[int, Record] = field(default_factory=dict)
    # Offsets of records of open transactions, and of aborted records.
    undecided: dict[int, int] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)
    # The time from which a tombstone may be removed.
    horizons: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.disk = new_disk()

    # Writing

    def append(self, batch: bytes) -> None:
        self.active.append(batch)
        self.next_offset = read_header(batch).next_offset

    def write(
        self, new: Sequence[NewRecord], codec: Codec, append_time: bool, who: int | None, transactional: bool
    ) -> None:
        base = self.next_offset
        kind = TimestampType.LOG_APPEND_TIME if append_time else TimestampType.CREATE_TIME
        if who is None:
            batch = build_batch(new, base_offset=base, codec=codec, timestamp_type=kind)
        else:
            producer = self.producers.setdefault(who, Producer())
            # A producer with an open transaction continues it.
            transactional = transactional or producer.open_from is not None
            batch = build_batch(
                new,
                base_offset=base,
                codec=codec,
                timestamp_type=kind,
                producer_id=who,
                producer_epoch=0,
                base_sequence=producer.sequence,
                transactional=transactional,
            )
            producer.sequence += len(new)
            producer.last_data_offset = base + len(new) - 1
            if transactional and producer.open_from is None:
                producer.open_from = base
            if transactional:
                self.undecided.update((base + slot, who) for slot in range(len(new)))
        self.written.update((record.offset, record) for record in decode_batch(batch))
        self.append(batch)

    def end(self, who: int, commit: bool) -> None:
        producer = self.producers.setdefault(who, Producer())
        first, offset = producer.open_from, self.next_offset
        self.append(marker(ControlType(int(commit)), base_offset=offset, producer_id=who))
        producer.open_from = None
        mine = [at for at, by in self.undecided.items() if by == who]
        for at in mine:
            del self.undecided[at]
        if first is not None and not commit:
            self.aborted.update(mine)
            self.active_aborted.append(AbortedTxn(who, first, offset, self.last_stable_offset))

    @property
    def last_stable_offset(self) -> int:
        return min(
            (one.open_from for one in self.producers.values() if one.open_from is not None),
            default=self.next_offset,
        )

    def roll(self) -> None:
        if self.active:
            write_segment(self.disk, self.active_base, self.active, self.active_aborted)
            self.active, self.active_aborted = [], []
            self.active_base = self.next_offset

    # Cleaning

    def aborted_index(self) -> list[AbortedTxn]:
        """The aborted transactions of the .txnindex files and of the active segment."""
        found = []
        for base in bases(self.disk):
            path = f"{DIRECTORY}/{file_name(base, TXN_INDEX)}"
            if path in self.disk.tree():
                file = self.disk.open(path)
                found += read_entries(file, base)
                file.close()
        return found + self.active_aborted

    def clean(self, group_bytes: int, slots: int) -> None:
        sizes = {
            base: len(self.disk.read(f"{DIRECTORY}/{file_name(base, LOG)}")) for base in bases(self.disk)
        }
        segments = [
            DirtySegment(base_offset=base, size=size, largest_timestamp=1) for base, size in sizes.items()
        ]
        segments.append(DirtySegment(base_offset=self.active_base, size=1, largest_timestamp=1))
        found = weigh(
            DirtyLog(
                name="topic-0",
                segments=segments,
                start_offset=0,
                end_offset=self.next_offset,
                last_stable_offset=self.last_stable_offset,
                checkpoint=self.checkpoint,
                config=CONFIG,
            ),
            self.now_ms,
        )
        last = {header.next_offset for header in read_headers(self.disk)}
        cleaning = clean_and_swap(
            self.disk,
            Setup(
                upper_bound=found.upper_bound,
                dirty_start=found.dirty_start,
                aborted=self.aborted_index(),
                producers={
                    who: LastRecord(producer.last_data_offset, 0) for who, producer in self.producers.items()
                },
                group_bytes=group_bytes,
                delete_retention_ms=RETENTION_MS,
                map_bytes=slots * SLOT_SIZE,
                now_ms=self.now_ms,
            ),
        )
        assert self.checkpoint <= cleaning.next_dirty_offset <= found.upper_bound
        if found.dirty_bytes:
            assert cleaning.next_dirty_offset > self.checkpoint
        self.checkpoint = cleaning.next_dirty_offset
        if found.upper_bound in last:
            assert found.upper_bound in {header.next_offset for header in read_headers(self.disk)}
        self.check(found.upper_bound)

    # Checking

    def check(self, cleaned_to: int) -> None:
        left = {record.offset: record for record in read_records(self.disk)}
        headers = read_headers(self.disk)
        assert all(before.next_offset <= after.base_offset for before, after in pairwise(headers))
        # No record was invented, moved or changed.
        assert list(left) == sorted(left)
        assert all(self.written[offset] == record for offset, record in left.items())
        # No record was removed from the range that was not compacted.
        assert all(at in left for at in self.written if cleaned_to <= at < self.active_base)
        self.check_last_values(left)
        self.check_producers(cleaned_to)
        self.check_committed_view()
        for at in self.written:
            if at < cleaned_to and self.written[at].value is None:
                self.horizons.setdefault(at, self.now_ms + RETENTION_MS)

    def check_last_values(self, left: dict[int, Record]) -> None:
        counts = [
            record
            for offset, record in self.written.items()
            if offset not in self.aborted and offset not in self.undecided and record.key is not None
        ]
        last = {record.key: record for record in counts}
        for record in last.values():
            if record.offset >= self.active_base or record.offset in left:
                continue
            assert record.value is None, f"{record} is lost"
            assert self.now_ms >= self.horizons[record.offset], f"{record} was removed too early"
        last_cleaned = {record.key: record.offset for record in counts if record.offset < self.checkpoint}
        # In the compacted range a key has at most one record, its last one.
        for offset, record in left.items():
            if offset < self.checkpoint:
                assert last_cleaned.get(record.key) == offset, f"{record} should have been removed"

    def check_producers(self, cleaned_to: int) -> None:
        """The last batch of every producer remains, so its last sequence is known."""
        found = {(one.producer_id, one.last_offset): one.last_sequence for one in read_headers(self.disk)}
        for who, producer in self.producers.items():
            at = producer.last_data_offset
            if at is not None and at < self.active_base:
                assert found[who, at] == producer.sequence - 1

    def check_committed_view(self) -> None:
        coming = sorted(self.aborted_index(), key=lambda txn: txn.first_offset, reverse=True)
        aborting: set[int] = set()
        for base in bases(self.disk):
            data = self.disk.read(f"{DIRECTORY}/{file_name(base, LOG)}")
            for at, header in batch_headers(data):
                while coming and coming[-1].first_offset <= header.last_offset:
                    aborting.add(coming.pop().producer_id)
                if header.is_control:
                    for record in decode_batch(data, at):
                        if read_control_type(record.key) is ControlType.ABORT:
                            aborting.discard(header.producer_id)
                elif not (header.is_transactional and header.producer_id in aborting):
                    offsets = {record.offset for record in decode_batch(data, at)}
                    assert not offsets & self.aborted, "aborted records are visible"
                else:
                    offsets = {record.offset for record in decode_batch(data, at)}
                    assert offsets <= self.aborted, "committed records are hidden"


# Events


@dataclass(frozen=True)
class Write:
    new: tuple[NewRecord, ...]
    codec: Codec
    append_time: bool
    who: int | None
    transactional: bool

    def happen(self, world: World) -> None:
        world.write(self.new, self.codec, self.append_time, self.who, self.transactional)


@dataclass(frozen=True)
class End:
    who: int
    commit: bool

    def happen(self, world: World) -> None:
        world.end(self.who, self.commit)


@dataclass(frozen=True)
class Roll:
    def happen(self, world: World) -> None:
        world.roll()


@dataclass(frozen=True)
class Clean:
    later_ms: int
    group_bytes: int
    slots: int

    def happen(self, world: World) -> None:
        world.now_ms += self.later_ms
        world.clean(self.group_bytes, self.slots)


NEW_RECORDS = st.tuples(
    st.integers(-1, 5000),
    st.one_of(st.sampled_from(KEYS), st.sampled_from(KEYS), st.none()),
    st.one_of(st.none(), st.binary(max_size=40)),
    st.sampled_from([(), (("name", b"value"), ("null", None))]),
)
WRITES = st.builds(
    Write,
    st.lists(NEW_RECORDS, min_size=1, max_size=BATCH_RECORDS_MAX).map(tuple),
    st.sampled_from(Codec),
    st.booleans(),
    st.one_of(st.none(), st.sampled_from(PRODUCERS)),
    st.booleans(),
)
ENDS = st.builds(End, st.sampled_from(PRODUCERS), st.booleans())
# One slot more than the keys of the largest batch and the load factor need.
SLOTS = st.one_of(st.integers(BATCH_RECORDS_MAX + 2, 12), st.just(1000))
CLEANS = st.builds(Clean, st.sampled_from([0, 1, 600, 2000]), st.sampled_from([1, 400, 1500, 1 << 20]), SLOTS)
EVENTS = st.lists(st.one_of(WRITES, WRITES, WRITES, ENDS, st.builds(Roll), CLEANS), min_size=12, max_size=60)


@settings(max_examples=150)
@given(EVENTS)
def test_compaction_keeps_the_last_committed_value_of_every_key(
    events: list[Write | End | Roll | Clean],
) -> None:
    world = World()
    for event in events:
        event.happen(world)
    # Finally, end every transaction and compact until nothing can be removed any more.
    for who in list(world.producers):
        world.end(who, commit=who % 2 == 0)
    world.roll()
    for _ in range(4):
        Clean(2 * RETENTION_MS, 1 << 20, 1000).happen(world)
    assert world.checkpoint == world.next_offset or not world.written
