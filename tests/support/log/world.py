"""A real log manager on a faulty simulated disk, driven step by step and compared with a dictionary.

All randomness comes from one seed. A failing run prints the command that replays it, and the last steps.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

from barnabas.base.executor import InlineExecutor
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.decode import decode_batch
from barnabas.records.header import Codec, read_header, whole_batches
from barnabas.records.validate import check_batch
from barnabas.sim.disk import PowerLoss, SimDisk
from barnabas.storage.cleaner.build import KeysDoNotFit
from barnabas.storage.cleaner.clean import clean, dirty_log
from barnabas.storage.cleaner.pick import weigh
from barnabas.storage.config import LogConfig
from barnabas.storage.errors import OffsetOutOfRange, UnexpectedOffset
from barnabas.storage.flush import flush
from barnabas.storage.log import Log
from barnabas.storage.lookup import latest_record, offset_for_time
from barnabas.storage.manager import LogManager
from barnabas.storage.producers.errors import ProducerRefused
from barnabas.storage.producers.table import Origin
from barnabas.storage.removal import retain
from barnabas.storage.warming import warmed
from support.clocks import ManualClock
from support.log.model import LogModel, ModelBatch, Rec

TP = TopicPartition("t", 0)
TOPIC_ID = Uuid(b"t" * 16)
DELETE_RETENTION_MS = 10_000
POLICIES = {False: [("delete",)], True: [("compact",), ("compact", "delete")]}
KEYS = [None, b"a", b"b", b"c", b"d", b"e"]
MARKER_VALUE = b"\0\0" + b"\0\0\0\7"


class World:
    """One partition, its model, and the steps that can be done with it."""

    def __init__(self, seed: int, *, compacted: bool = False) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.clock = ManualClock(1_700_000_000_000)
        self.disk = SimDisk(Random(seed + 1), clock=self.clock)
        self.compacted = compacted
        self.config = self._config()
        self.model = LogModel()
        self.epoch = 0
        # An append or truncation during which the power was lost, so it may or may not have happened.
        self.maybe: ModelBatch | None = None
        self.next_sequence: dict[int, int] = {}
        self.open_txns: set[int] = set()
        # The cleaner checkpoint's offset, and the offset from which nothing was compacted.
        self.clean_offset: int | None = None
        self.compacted_upto = 0
        self.high_when_compacted = 0
        self.story: list[str] = []
        self.manager = self._new_manager()

    def _config(self) -> LogConfig:
        rng = self.rng
        # Bypasses the validation, which forbids segments this small.
        return replace(
            LogConfig.parse({}),
            segment_bytes=rng.choice([1 << 20, 4096, 8192]),
            index_interval_bytes=rng.choice([0, 100, 1000]),
            segment_index_bytes=rng.choice([10_485_760, 64, 240]),
            segment_ms=rng.choice([604_800_000, 5_000]),
            retention_ms=rng.choice([-1, 20_000]),
            retention_bytes=rng.choice([-1, 10_000]),
            cleanup_policy=rng.choice(POLICIES[self.compacted]),
            delete_retention_ms=DELETE_RETENTION_MS,
            min_compaction_lag_ms=rng.choice([0, 0, 3000]),
            min_cleanable_dirty_ratio=0.0,
            max_message_bytes=4000,
        )

    def _new_manager(self) -> LogManager:
        return LogManager(
            self.disk,
            self.clock,
            InlineExecutor(),
            paths=["/d"],
            cluster_id="c",
            node_id=1,
            configs=lambda _: self.config,
            new_id=lambda: Uuid(self.rng.randbytes(16)),
        )

    @property
    def log(self) -> Log:
        return self.manager.logs[TP]

    # Running

    def run(self, steps: int, *, replay: str = "") -> None:
        try:
            asyncio.run(self._run(steps))
        except BaseException as error:
            last = "\n  ".join(self.story[-25:])
            error.add_note(f"seed {self.seed}, step {len(self.story)}; replay with: {replay}\n  {last}")
            raise

    async def _run(self, steps: int) -> None:
        await self.manager.open()
        await self.manager.create(TP, TOPIC_ID, self.config)
        weights = {name: weight for name, weight in STEPS.items() if self.compacted or name != "compact"}
        names, chances = list(weights), list(weights.values())
        for _ in range(steps):
            name = self.rng.choices(names, chances)[0]
            if self.rng.random() < 0.03:
                await self._step_with_power_loss(name)
            else:
                await self._step(name)

    async def _step(self, name: str) -> None:
        self.story.append(name)
        step: Callable[[], Coroutine[Any, Any, None]] = getattr(self, f"do_{name}")
        await step()

    async def _step_with_power_loss(self, name: str) -> None:
        after = self.rng.randint(1, 12)
        self.story.append(f"power loss after {after} operations")
        self.disk.crash_after(after)
        with suppress(PowerLoss):
            await self._step(name)
            await self._step("append")
            await self._step("flush")
        await self.do_crash()

    def tell(self, what: str) -> None:
        self.story[-1] += f" {what}"

    # Appending

    def _records(self, count: int) -> list[tuple[int, bytes | None, bytes | None, tuple[()]]]:
        rng = self.rng
        keys = KEYS[1:] if self.compacted else KEYS
        return [
            (
                self.clock.now_ms() - rng.randrange(3000),
                rng.choice(keys),
                None if rng.random() < 0.2 else rng.randbytes(rng.choice([3, 3, 40, 400])),
                (),
            )
            for _ in range(count)
        ]

    def _append(self, *, producer_id: int = -1, transactional: bool = False) -> None:
        rng = self.rng
        records = self._records(rng.choice([1, 1, 2, 5]))
        sequence = self.next_sequence.get(producer_id, 0) if producer_id >= 0 else -1
        data = build_batch(
            records,
            codec=rng.choice([Codec.NONE, Codec.NONE, Codec.GZIP, Codec.LZ4]),
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
        )
        if len(data) > 4000:
            return
        base = self.model.end
        batch = ModelBatch(
            tuple(Rec(base + at, time, key, value) for at, (time, key, value, _) in enumerate(records)),
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
            leader_epoch=self.epoch,
        )
        self.maybe = batch
        done = self.log.append_as_leader(data, leader_epoch=self.epoch, now_ms=self.clock.now_ms())
        assert (done.base_offset, done.last_offset, done.duplicate) == (base, batch.next_offset - 1, False)
        self._has_appended(batch)
        self.tell(f"{base}..{done.last_offset} of {producer_id}")

    def _has_appended(self, batch: ModelBatch) -> None:
        self.model.append(batch)
        self.maybe = None
        if batch.producer_id >= 0 and batch.marker is None:
            self.next_sequence[batch.producer_id] = batch.base_sequence + len(batch.records)
            if batch.transactional:
                self.open_txns.add(batch.producer_id)
        elif batch.marker is not None:
            self.open_txns.discard(batch.producer_id)

    async def do_append(self) -> None:
        self._append()

    async def do_append_idempotent(self) -> None:
        self._append(producer_id=self.rng.choice([1, 2]))

    async def do_append_transactional(self) -> None:
        self._append(producer_id=self.rng.choice([11, 12, 13]), transactional=True)

    async def do_end_transaction(self) -> None:
        if not self.open_txns:
            return
        producer_id = self.rng.choice(sorted(self.open_txns))
        aborted = self.rng.random() < 0.5
        data = build_control_batch(
            ControlType.ABORT if aborted else ControlType.COMMIT,
            MARKER_VALUE,
            timestamp=self.clock.now_ms(),
            leader_epoch=self.epoch,
            producer_id=producer_id,
            producer_epoch=0,
        )
        base = self.model.end
        record = decode_batch(data)[0]
        batch = ModelBatch(
            (Rec(base, record.timestamp, record.key, record.value),),
            producer_id=producer_id,
            producer_epoch=0,
            transactional=True,
            marker=aborted,
            leader_epoch=self.epoch,
        )
        self.maybe = batch
        self.log.append_as_leader(
            data, leader_epoch=self.epoch, now_ms=self.clock.now_ms(), origin=Origin.COORDINATOR
        )
        self._has_appended(batch)
        self.tell(f"{'abort' if aborted else 'commit'} of {producer_id} at {base}")

    async def do_send_again(self) -> None:
        """Check that a duplicate of a producer's last batch is detected, and one out of order refused."""
        producer_id = self.rng.choice([1, 2, 11, 12, 13])
        last = self.model.last_data_batch(producer_id)
        if last is None or last.next_offset <= self.model.start:
            return
        transactional = last.transactional
        data = build_batch(
            [(0, b"k", b"other", ())] * len(last.records),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=last.base_sequence,
            transactional=transactional,
        )
        done = self.log.append_as_leader(data, leader_epoch=self.epoch, now_ms=self.clock.now_ms())
        assert done.duplicate, f"duplicate {last} was appended again"
        assert (done.base_offset, done.last_offset) == (last.base_offset, last.next_offset - 1)

        late = build_batch(
            [(0, b"k", b"v", ())],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=last.base_sequence + len(last.records) + 5,
            transactional=transactional,
        )
        try:
            self.log.append_as_leader(late, leader_epoch=self.epoch, now_ms=self.clock.now_ms())
        except ProducerRefused:
            return
        raise AssertionError("a batch out of order was appended")

    async def do_follow(self) -> None:
        """Append a leader's batch as a follower, perhaps after an offset gap; a second append is refused."""
        rng = self.rng
        base = self.model.end + rng.choice([0, 0, 3])
        self.epoch += 1 if rng.random() < 0.2 else 0
        records = self._records(rng.choice([1, 3]))
        data = build_batch(records, base_offset=base, leader_epoch=self.epoch)
        batch = ModelBatch(
            tuple(Rec(base + at, time, key, value) for at, (time, key, value, _) in enumerate(records)),
            leader_epoch=self.epoch,
        )
        self.maybe = batch
        self.log.append_as_follower(data, self.clock.now_ms())
        self._has_appended(batch)
        self.tell(f"{base}..{batch.next_offset - 1}")
        try:
            self.log.append_as_follower(data, self.clock.now_ms())
        except UnexpectedOffset:
            return
        raise AssertionError("batches below the log end were appended")

    # Reading

    async def do_read(self) -> None:
        rng, log = self.rng, self.log
        start, end = self.model.start, self.model.end
        assert (log.start_offset, log.end_offset) == (start, end)
        offset = rng.randint(start, end)
        upto = rng.choice([end, rng.randint(offset, end)])
        bytes_max = rng.choice([1, 100, 5000, 1 << 20])
        self.tell(f"{offset} upto {upto}, {bytes_max} bytes")
        got, is_empty = await self._batches(offset, upto, bytes_max)
        # The first batch may begin below the log start.
        got = [record for record in got if record.offset >= start]
        wanted = self.model.records(start, upto)
        if got:
            first, last = got[0].offset, got[-1].offset
            assert got == [
                record for record in self.model.records(start, upto) if first <= record.offset <= last
            ]
            assert all(record.offset < upto for record in got)
            skipped = [record for record in wanted if offset <= record.offset < first]
            assert not skipped, f"{skipped} are missing before {got}"
        elif is_empty:
            # Only records in the same batch as an offset from `upto` on may be missing.
            whole = [b for b in self.model.batches() if b.next_offset > offset and b.next_offset <= upto]
            kept = [b for b in whole if self.model.records(max(b.base_offset, start), b.next_offset)]
            assert not kept, f"nothing was read, expected {kept}"

    async def _batches(self, offset: int, upto: int, bytes_max: int) -> tuple[list[Rec], bool]:
        """The records of one read, and whether it had no batch at all: compaction leaves empty batches."""
        log = self.log
        read = await warmed(
            log, self.manager.executor, lambda: log.read(offset, upto=upto, bytes_max=bytes_max)
        )
        data = read.read()
        assert len(data) == read.size
        whole = whole_batches(data)
        if data:
            assert whole.batches >= 1, "no complete batch"
            first = read_header(data).size
            assert len(data) <= max(bytes_max, first)
        return self._decode(data[: whole.size]), not data

    def _decode(self, data: bytes) -> list[Rec]:
        records: list[Rec] = []
        at = 0
        while at < len(data):
            header = check_batch(data, at)
            records += [Rec(r.offset, r.timestamp, r.key, r.value) for r in decode_batch(data, at)]
            at += header.size
        return records

    async def read_all(self, start: int, upto: int) -> list[Rec]:
        """All records, read as a consumer does."""
        records: list[Rec] = []
        offset = start
        log = self.log
        while offset < upto:
            at = offset
            read = await warmed(
                log, self.manager.executor, lambda at=at: log.read(at, upto=upto, bytes_max=3000)
            )  # type: ignore[misc]
            data = read.read()
            whole = whole_batches(data)
            if not data:
                break
            position = 0
            while position < whole.size:
                header = check_batch(data, position)
                records += [
                    Rec(r.offset, r.timestamp, r.key, r.value)
                    for r in decode_batch(data, position)
                    if start <= r.offset < upto
                ]
                position += header.size
                offset = header.next_offset
        return records

    async def do_read_all(self) -> None:
        start, end = self.model.start, self.model.end
        assert await self.read_all(start, end) == self.model.records(start, end)

    async def do_read_committed(self) -> None:
        log, model = self.log, self.model
        log.advance_high_watermark(model.end)
        stable = log.last_stable_offset
        first_open = model.first_open()
        expected = model.end if first_open is None else max(first_open, model.start)
        assert stable == expected, f"the last stable offset is {stable}, not {expected}"
        start = self.rng.randint(model.start, stable)
        self.tell(f"from {start} to {stable}")
        got = await self._consume_committed(start, stable)
        assert got == model.committed(start, stable)

    async def _consume_committed(self, start: int, upto: int) -> list[Rec]:
        """Filter as a client does, by the aborted transactions of each fetch response."""
        log = self.log
        aborted = await warmed(log, self.manager.executor, lambda: log.aborted_in(start, upto))
        waiting = sorted(aborted, key=lambda txn: txn.first_offset)
        read = await warmed(log, self.manager.executor, lambda: log.read(start, upto=upto, bytes_max=1 << 30))
        # A read covers only one range of segments, so continue until everything is read.
        records: list[Rec] = []
        active: set[int] = set()
        offset = start
        while offset < upto:
            data = read.read()
            if not data:
                break
            position = 0
            while position < whole_batches(data).size:
                header = check_batch(data, position)
                while waiting and waiting[0].first_offset <= header.last_offset:
                    active.add(waiting.pop(0).producer_id)
                if header.is_control:
                    kind = decode_batch(data, position)
                    if kind and kind[0].key is not None and kind[0].key[3] == ControlType.ABORT:
                        active.discard(header.producer_id)
                elif not (header.is_transactional and header.producer_id in active):
                    records += [
                        Rec(r.offset, r.timestamp, r.key, r.value)
                        for r in decode_batch(data, position)
                        if start <= r.offset < upto
                    ]
                position += header.size
                offset = header.next_offset
            at = offset
            if at < upto:
                read = await warmed(
                    log,
                    self.manager.executor,
                    lambda at=at: log.read(at, upto=upto, bytes_max=1 << 30),  # type: ignore[misc]
                )
        return records

    async def do_look_up_time(self) -> None:
        log, model = self.log, self.model
        records = model.records(model.start, model.end)
        if not records:
            return
        times = [record.timestamp for record in records]
        wanted = self.rng.randint(min(times) - 10, max(times) + 10)
        found = await warmed(log, self.manager.executor, lambda: offset_for_time(log, wanted))
        expected = next((record for record in records if record.timestamp >= wanted), None)
        assert (found and found.offset) == (expected and expected.offset), f"time {wanted}"
        latest = await warmed(log, self.manager.executor, lambda: latest_record(log))
        assert latest is not None
        # A batch that begins below the log start may have its latest record there.
        first = [r.timestamp for b in model.batches() if b.base_offset < model.start for r in b.records]
        assert latest.timestamp == max(times) or latest.timestamp < max(first, default=-1)

    async def do_out_of_range(self) -> None:
        for offset in (self.model.start - 1, self.model.end + 1):
            try:
                self.log.read(offset, upto=self.model.end, bytes_max=10)
            except OffsetOutOfRange:
                continue
            raise AssertionError(f"offset {offset} was read")

    async def do_cool(self) -> None:
        self.disk.cool()

    # What changes the log

    async def do_roll(self) -> None:
        self.log.roll(self.clock.now_ms())

    async def do_wait(self) -> None:
        self.clock.advance(self.rng.choice([10, 1000, 8000]))

    async def do_new_epoch(self) -> None:
        self.epoch += 1

    async def do_flush(self) -> None:
        end = self.model.end
        await flush(self.log, self.manager.executor)
        self.model.flushed = max(self.model.flushed, end)
        assert self.log.recovery_point == end

    async def do_checkpoint(self) -> None:
        await self.manager.write_checkpoints(self.manager.directories[0])
        self.model.durable_start = min(self.model.start, self.log.recovery_point)

    async def do_delete_records(self) -> None:
        log, model = self.log, self.model
        log.advance_high_watermark(model.end)
        # Unflushed records may be lost, and then it is unknown which records were deleted.
        to = self.rng.randint(model.start, max(model.start, model.flushed))
        log.advance_start(to)
        model.start = to
        self.tell(f"to {to}")
        if self.compacted:
            # A lower start offset would reveal records that were compacted meanwhile.
            await self.do_checkpoint()

    async def do_retain(self) -> None:
        log, model = self.log, self.model
        log.advance_high_watermark(model.end)
        gone = await retain(log, self.manager.executor, self.clock.now_ms())
        model.start = max(model.start, log.start_offset)
        self.tell(f"{gone} deleted, start {model.start}")
        for path in gone:
            self.disk.remove(path)
        if gone:
            model.durable_start = max(model.durable_start, log.bases[0])
        assert log.start_offset == model.start

    async def do_truncate(self) -> None:
        model = self.model
        if model.end == model.start:
            return
        # Nothing below the high watermark is ever truncated. Compaction relies on that: it keeps the last
        # batch of each producer.
        lowest = max(model.start, model.end - 8, self.high_when_compacted)
        offset = self.rng.randint(min(lowest, model.end), model.end)
        self.tell(f"to {offset} of {model.end}")
        # Truncation within a batch removes all of it.
        stays = [batch.next_offset for batch in model.history.values() if batch.next_offset <= offset]
        last = max(stays, default=0)
        model.flushed = min(model.flushed, last)
        first = self.log.segments[0]
        for path in await self.manager.truncate(self.log, offset):
            self.disk.remove(path)
        assert last <= self.log.end_offset <= max(offset, model.start)
        self.tell(f"is {self.log.end_offset}")
        self._cut_model(self.log.end_offset)
        model.start = self.log.start_offset
        if self.log.segments[0] is not first:
            # The log is empty, so no producer is known.
            model.history.clear()
        self._know_producers()

    async def do_compact(self) -> None:
        log, model = self.log, self.model
        log.advance_high_watermark(model.end)
        await self.do_flush()
        await self.do_checkpoint()
        checkpoint, flushed = self.clean_offset, log.recovery_point
        dirty = await warmed(
            log,
            self.manager.executor,
            lambda: dirty_log(log, checkpoint=checkpoint, flushed=flushed),
        )
        candidate = weigh(dirty, self.clock.now_ms())
        self.tell(f"[{candidate.dirty_start}, {candidate.upper_bound})")
        if not candidate.is_worth_it:
            return
        self.compacted_upto = max(self.compacted_upto, candidate.upper_bound)
        self.high_when_compacted = log.high_watermark
        map_bytes = self.rng.choice([100, 1 << 16])
        try:
            result = await clean(
                log,
                self.manager.executor,
                candidate,
                map_bytes=map_bytes,
                secret=bytes(16),
                now_ms=self.clock.now_ms(),
            )
        except KeysDoNotFit:
            assert map_bytes == 100
            return
        self.clean_offset = result.next_dirty_offset
        self.tell(f"kept {result.stats.records_kept} of {result.stats.records_read}")
        for path in result.to_remove:
            self.disk.remove(path)
        self.take_compacted(await self.read_all(model.start, model.end))

    # Stopping and starting

    async def do_reopen(self) -> None:
        await self.manager.close()
        self.model.flushed = self.model.end
        self.model.durable_start = self.model.start
        await self._open()
        assert (self.log.start_offset, self.log.end_offset) == (self.model.start, self.model.end)

    async def do_crash(self) -> None:
        lost = self.disk.crash()
        self.tell(f"-- lost: {lost[:300]}")
        await self._open()
        await self._agree_after_crash()

    async def do_crash_while_opening(self) -> None:
        """Lose power again during recovery, perhaps more than once."""
        self.tell(f"-- lost: {self.disk.crash()[:200]}")
        for _ in range(self.rng.randint(1, 3)):
            self.disk.crash_after(self.rng.randint(1, 10))
            self.manager = self._new_manager()
            with suppress(PowerLoss):
                await self.manager.open()
            self.tell(f"-- again: {self.disk.crash()[:200]}")
        await self._open()
        await self._agree_after_crash()

    async def _open(self) -> None:
        self.manager = self._new_manager()
        report = await self.manager.open()
        assert not report.broken, report.broken
        assert not report.failed, report.failed

    async def _agree_after_crash(self) -> None:
        log, model = self.log, self.model
        if self.maybe is not None and log.end_offset > model.end:
            model.append(self.maybe)
        self.maybe = None
        assert model.flushed <= log.end_offset <= model.end, (
            f"flushed up to {model.flushed}, appended up to {model.end}, and the log ends at {log.end_offset}"
        )
        self._cut_model(log.end_offset)
        assert log.start_offset >= min(model.durable_start, log.end_offset)
        assert log.start_offset <= max(model.start, log.bases[0])
        model.start = log.start_offset
        # Everything that was recovered is now on the disk.
        model.flushed = log.end_offset
        got = await self.read_all(model.start, model.end)
        if self.compacted:
            self.take_compacted(got)
        else:
            assert got == model.records(model.start, model.end)
        self._know_producers()

    def take_compacted(self, got: list[Rec]) -> None:
        """Check the result of a compaction, and make it the model's content."""
        model = self.model
        there = {record.offset: record for record in got}
        known = {record.offset: record for record in model.records(model.start, model.end)}
        for offset, record in there.items():
            assert known.get(offset) == record, f"{record} was never written or has reappeared"
        keep = model.must_survive(self.clock.now_ms(), DELETE_RETENTION_MS, self.compacted_upto)
        lost = keep - set(there)
        assert not lost, f"{[known.get(offset) for offset in sorted(lost)]} are lost"
        model.forget(set(known) - set(there))
        for offset, record in there.items():
            if record.value is None and offset < self.compacted_upto:
                model.tombstones_since.setdefault(offset, self.clock.now_ms())

    def _cut_model(self, end: int) -> None:
        self.model.cut(end)
        self.compacted_upto = min(self.compacted_upto, end)
        if self.clean_offset is not None:
            self.clean_offset = min(self.clean_offset, end)

    def _know_producers(self) -> None:
        """Derive sequences and open transactions from the content of the log."""
        self.next_sequence.clear()
        self.open_txns.clear()
        for batch in self.model.history.values():
            if batch.marker is not None:
                self.open_txns.discard(batch.producer_id)
            elif batch.producer_id >= 0:
                self.next_sequence[batch.producer_id] = batch.base_sequence + len(batch.records)
                if batch.transactional:
                    self.open_txns.add(batch.producer_id)


STEPS = {
    "append": 12,
    "append_idempotent": 5,
    "append_transactional": 5,
    "end_transaction": 4,
    "send_again": 3,
    "follow": 2,
    "read": 12,
    "read_all": 2,
    "read_committed": 3,
    "look_up_time": 3,
    "out_of_range": 1,
    "cool": 1,
    "roll": 1,
    "wait": 3,
    "new_epoch": 1,
    "flush": 3,
    "checkpoint": 2,
    "delete_records": 1,
    "retain": 2,
    "compact": 4,
    "truncate": 2,
    "reopen": 1,
    "crash": 2,
    "crash_while_opening": 1,
}
