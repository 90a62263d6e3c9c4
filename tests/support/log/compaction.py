"""Small logs for the cleaner's tests: build them of batches, clean them and read them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from barnabas.records.builder import NewRecord, build_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.decode import decode_batch
from barnabas.records.header import BatchHeader, batch_headers
from barnabas.records.record import Record
from barnabas.sim.disk import SimDisk
from barnabas.storage.cleaner.facts import CleanedGroup, CleaningFacts
from barnabas.storage.cleaner.grouping import Source
from barnabas.storage.cleaner.job import Cleaning
from barnabas.storage.cleaner.swap import publish, retire, settle
from barnabas.storage.names import LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX, file_name, split_name
from barnabas.storage.producers.table import LastRecord
from barnabas.storage.segment.segment import Segment
from barnabas.storage.segment.txn_index import AbortedTxn, pack_entry

DIRECTORY = "/data/topic-0"
SECRET = bytes(range(16))
NOW_MS = 1_000_000


def new_disk(seed: int = 0) -> SimDisk:
    disk = SimDisk(Random(seed))
    disk.make_directory(DIRECTORY)
    disk.sync_directory("/data")
    disk.sync_directory("/")
    return disk


def records(*pairs: tuple[bytes | None, bytes | None], timestamp: int = 1000) -> list[NewRecord]:
    return [(timestamp, key, value, ()) for key, value in pairs]


def marker(kind: ControlType, *, base_offset: int, producer_id: int, producer_epoch: int = 0) -> bytes:
    return build_control_batch(
        kind,
        bytes(6),
        timestamp=1000,
        base_offset=base_offset,
        leader_epoch=0,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def write_segment(
    disk: SimDisk, base_offset: int, batches: Iterable[bytes], aborted: Sequence[AbortedTxn] = ()
) -> None:
    """Write and sync a segment with its indexes."""
    segment = Segment(disk, DIRECTORY, base_offset)
    segment.make_files()
    for batch in batches:
        for _, header in batch_headers(batch):
            segment.append([batch], len(batch), header.last_offset, header.max_timestamp, 4096)
    segment.finish()
    for written in segment.files_to_sync():
        written.sync()
    segment.close()
    if aborted:
        file = disk.open(f"{DIRECTORY}/{file_name(base_offset, TXN_INDEX)}", create=True)
        file.write(0, [b"".join(pack_entry(txn) for txn in aborted)])
        file.sync()
        file.close()
    disk.sync_directory(DIRECTORY)


def bases(disk: SimDisk) -> list[int]:
    parts = (split_name(entry.name) for entry in disk.entries(DIRECTORY))
    return [part[0] for part in parts if part is not None and part[1] == LOG]


def sources(disk: SimDisk, upper_bound: int) -> list[Source]:
    sizes = {entry.name: entry.size for entry in disk.entries(DIRECTORY)}
    return [
        Source(
            base_offset=base,
            size=sizes[file_name(base, LOG)],
            index_size=sizes[file_name(base, OFFSET_INDEX)],
            time_index_size=sizes[file_name(base, TIME_INDEX)],
        )
        for base in bases(disk)
        if base < upper_bound
    ]


def read_headers(disk: SimDisk) -> list[BatchHeader]:
    """The headers of all batches of the log."""
    data = [disk.read(f"{DIRECTORY}/{file_name(base, LOG)}") for base in bases(disk)]
    return [header for part in data for _, header in batch_headers(part)]


def read_records(disk: SimDisk, *, control: bool = False) -> list[Record]:
    """The records of the log; markers only with `control`."""
    found: list[Record] = []
    for base in bases(disk):
        data = disk.read(f"{DIRECTORY}/{file_name(base, LOG)}")
        for at, header in batch_headers(data):
            if control or not header.is_control:
                found += decode_batch(data, at)
    return found


def pairs(disk: SimDisk) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in read_records(disk)]


@dataclass(kw_only=True)
class Setup:
    """Arguments of a cleaning; the defaults limit nothing."""

    upper_bound: int
    dirty_start: int = 0
    aborted: Sequence[AbortedTxn] = ()
    producers: Mapping[int, LastRecord] = field(default_factory=dict)
    group_bytes: int = 1 << 30
    index_bytes: int = 1 << 20
    delete_retention_ms: int = 5000
    map_bytes: int = 1 << 20
    now_ms: int = NOW_MS

    def facts(self, disk: SimDisk) -> CleaningFacts:
        return CleaningFacts(
            directory=DIRECTORY,
            sources=sources(disk, self.upper_bound),
            dirty_start=self.dirty_start,
            upper_bound=self.upper_bound,
            aborted=self.aborted,
            producers=self.producers,
            group_bytes=self.group_bytes,
            index_bytes=self.index_bytes,
            index_interval_bytes=4096,
            delete_retention_ms=self.delete_retention_ms,
            map_bytes=self.map_bytes,
            secret=SECRET,
            now_ms=self.now_ms,
        )


def swap_in(disk: SimDisk, group: CleanedGroup) -> list[str]:
    """Put one cleaned group in place; return the .deleted paths to remove later."""
    publish(disk, DIRECTORY, group.base_offset)
    paths = retire(disk, DIRECTORY, group.base_offset, group.replaces)
    settle(disk, DIRECTORY, group.base_offset)
    return paths


def clean_and_swap(disk: SimDisk, setup: Setup) -> Cleaning:
    """Do a complete run: swap in each group before the next, and remove the old files."""
    cleaning = Cleaning(disk, setup.facts(disk))
    cleaning.fill_map()
    for number in range(len(cleaning.groups)):
        group = cleaning.clean_group(number)
        for path in swap_in(disk, group):
            disk.remove(path)
    return cleaning


def simple_batch(base_offset: int, *pairs: tuple[bytes | None, bytes | None]) -> bytes:
    return build_batch(records(*pairs), base_offset=base_offset)
