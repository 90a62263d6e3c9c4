"""A broker's storage on a faulty simulated disk: two log directories and several partitions.

All randomness comes from one seed. Each partition has a model of its expected content; `look()` compares the
two and returns the errors that clients would get.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from barnabas.base.errors import BarnabasError
from barnabas.base.executor import InlineExecutor
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.decode import decode_batch
from barnabas.sim.disk import SimDisk
from barnabas.storage.config import LogConfig
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.errors import StorageError
from barnabas.storage.flush import flush
from barnabas.storage.loading import OpenReport
from barnabas.storage.log import Log
from barnabas.storage.manager import LogManager
from barnabas.storage.producers.table import Origin
from support.clocks import ManualClock
from support.log.model import LogModel, ModelBatch, Rec
from support.our_client.checking_consumer import Consumer, check_committed, check_log, check_times

A, B = "/a", "/b"
T0, U0, V0 = TopicPartition("t", 0), TopicPartition("u", 0), TopicPartition("v", 0)
HOMES = {T0: A, U0: A, V0: B}
KEYS = (None, b"a", b"b", b"c")
MARKER_VALUE = b"\0\0" + b"\0\0\0\7"

CONFIG = replace(
    LogConfig.parse({}),
    segment_bytes=4096,
    index_interval_bytes=200,
    retention_ms=-1,
    retention_bytes=-1,
)


@dataclass(slots=True)
class Partition:
    """The model of one partition, and which part of it is known to be on the disk."""

    path: str
    model: LogModel = field(default_factory=LogModel)
    sequences: dict[int, int] = field(default_factory=dict)
    open_txns: set[int] = field(default_factory=set)
    epoch: int = 0
    # Lower bound of the recovery point in the checkpoint on the disk.
    recovery_point: int = 0
    # A batch whose append was interrupted by a power loss or disk fault, so it may or may not be in the log.
    maybe: ModelBatch | None = None


class Broker:
    """The logs of a broker, and their models."""

    def __init__(
        self,
        seed: int,
        *,
        homes: Mapping[TopicPartition, str] = HOMES,
        config: LogConfig = CONFIG,
        chance: Random | None = None,
    ) -> None:
        self.rng = Random(seed)
        self.clock = ManualClock(1_700_000_000_000)
        self.disk = SimDisk(chance or Random(seed + 1), clock=self.clock)
        self.executor = InlineExecutor()
        self.config = config
        self.paths = sorted(set(homes.values()))
        self.parts = {tp: Partition(path) for tp, path in homes.items()}
        self.story: list[str] = []
        self.manager = self.new_manager()

    def new_manager(self) -> LogManager:
        return LogManager(
            self.disk,
            self.clock,
            self.executor,
            paths=self.paths,
            cluster_id="c",
            node_id=1,
            configs=lambda _: self.config,
            new_id=lambda: Uuid(self.rng.randbytes(16)),
        )

    def tell(self, what: str) -> None:
        self.story.append(what)

    def log(self, tp: TopicPartition) -> Log:
        found = self.manager.get(tp)
        assert found is not None, f"{tp} is missing"
        return found

    def directory(self, path: str) -> LogDirectory:
        return next(found for found in self.manager.directories if found.path == path)

    # Starting and stopping

    async def start(self) -> None:
        """Open the directories for the first time, and create the partitions."""
        await self.manager.open()
        for tp, part in self.parts.items():
            await self.manager.create(tp, topic_id(tp), self.config, path=part.path)

    async def stop(self) -> None:
        await self.manager.close()
        for part in self.parts.values():
            part.model.flushed = part.recovery_point = part.model.end
            part.model.durable_start = part.model.start
        self.tell("clean stop")

    def crash(self) -> None:
        self.tell(f"power loss: {self.disk.crash()[:300]}")

    async def open(self) -> OpenReport:
        self.manager = self.new_manager()
        report = await self.manager.open()
        self.tell(f"opened: broken {report.broken}, failed {report.failed}, {report.findings}")
        return report

    def settle(self, tp: TopicPartition, *, floor: int | None = None) -> None:
        """Check that a log has all flushed batches after a power loss, and adjust the model to it."""
        log, part = self.log(tp), self.parts[tp]
        model = part.model
        if part.maybe is not None and log.end_offset > model.end:
            model.append(part.maybe)
        part.maybe = None
        least = model.flushed if floor is None else floor
        assert least <= log.end_offset <= model.end, (
            f"{tp}: flushed up to {least}, appended up to {model.end}, and the log ends at {log.end_offset}"
        )
        model.cut(log.end_offset)
        assert min(model.durable_start, model.end) <= log.start_offset <= max(model.start, log.bases[0])
        model.start = log.start_offset
        model.flushed = model.end
        self._know_producers(part)

    def _know_producers(self, part: Partition) -> None:
        part.sequences.clear()
        part.open_txns.clear()
        for batch in part.model.history.values():
            self._know(part, batch)

    def _know(self, part: Partition, batch: ModelBatch) -> None:
        if batch.marker is not None:
            part.open_txns.discard(batch.producer_id)
        elif batch.producer_id >= 0:
            part.sequences[batch.producer_id] = batch.base_sequence + len(batch.records)
            if batch.transactional:
                part.open_txns.add(batch.producer_id)

    # Working

    def append(self, tp: TopicPartition) -> None:
        """Append a batch of a random kind, or end a transaction."""
        rng, part = self.rng, self.parts[tp]
        if part.open_txns and rng.random() < 0.3:
            self.end_transaction(tp, rng.choice(sorted(part.open_txns)), aborted=rng.random() < 0.7)
        elif rng.random() < 0.3:
            self.append_data(tp, rng.choice([11, 12]), transactional=True)
        else:
            self.append_data(tp, rng.choice([-1, -1, 1]))

    def append_one(self, tp: TopicPartition, producer_id: int = -1) -> None:
        """Append a batch of one record with the current time, transactional if `producer_id` is given."""
        part = self.parts[tp]
        record = Rec(part.model.end, self.clock.now_ms(), b"k", f"{tp} at {part.model.end}".encode())
        in_txn = producer_id >= 0
        batch = ModelBatch(
            (record,),
            producer_id=producer_id,
            producer_epoch=0 if in_txn else -1,
            base_sequence=part.sequences.get(producer_id, 0) if in_txn else -1,
            transactional=in_txn,
            leader_epoch=part.epoch,
        )
        data = build_batch(
            [(record.timestamp, record.key, record.value, ())],
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            transactional=in_txn,
        )
        self._append(tp, batch, data, Origin.CLIENT)

    def append_data(self, tp: TopicPartition, producer_id: int, *, transactional: bool = False) -> None:
        rng, part = self.rng, self.parts[tp]
        records: list[tuple[int, bytes | None, bytes | None, tuple[()]]] = [
            (
                self.clock.now_ms() - rng.randrange(50),
                rng.choice(KEYS),
                rng.randbytes(rng.choice([3, 150])),
                (),
            )
            for _ in range(rng.choice([1, 1, 3]))
        ]
        self.clock.advance(rng.randrange(100))
        sequence = part.sequences.get(producer_id, 0) if producer_id >= 0 else -1
        epoch = 0 if producer_id >= 0 else -1
        data = build_batch(
            records,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        base = part.model.end
        batch = ModelBatch(
            tuple(Rec(base + at, time, key, value) for at, (time, key, value, _) in enumerate(records)),
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
            leader_epoch=part.epoch,
        )
        self._append(tp, batch, data, Origin.CLIENT)

    def end_transaction(self, tp: TopicPartition, producer_id: int, *, aborted: bool) -> None:
        part = self.parts[tp]
        data = build_control_batch(
            ControlType.ABORT if aborted else ControlType.COMMIT,
            MARKER_VALUE,
            timestamp=self.clock.now_ms(),
            leader_epoch=part.epoch,
            producer_id=producer_id,
            producer_epoch=0,
        )
        record = decode_batch(data)[0]
        batch = ModelBatch(
            (Rec(part.model.end, record.timestamp, record.key, record.value),),
            producer_id=producer_id,
            producer_epoch=0,
            transactional=True,
            marker=aborted,
            leader_epoch=part.epoch,
        )
        self._append(tp, batch, data, Origin.COORDINATOR)

    def _append(self, tp: TopicPartition, batch: ModelBatch, data: bytes, origin: Origin) -> None:
        log, part = self.log(tp), self.parts[tp]
        part.maybe = batch
        try:
            done = log.append_as_leader(
                data, leader_epoch=part.epoch, now_ms=self.clock.now_ms(), origin=origin
            )
        except OSError as error:
            raise self.manager.failed(log, error) from error
        assert (done.base_offset, done.last_offset) == (batch.base_offset, batch.next_offset - 1)
        part.maybe = None
        part.model.append(batch)
        self._know(part, batch)

    async def flush(self, tp: TopicPartition) -> None:
        log, model = self.log(tp), self.parts[tp].model
        end = model.end
        try:
            await flush(log, self.executor)
        except OSError as error:
            raise self.manager.failed(log, error) from error
        assert log.recovery_point == end
        model.flushed = end

    async def checkpoint(self, path: str) -> None:
        inside = [part for part in self.parts.values() if part.path == path]
        await self.manager.write_checkpoints(self.directory(path))
        for part in inside:
            part.recovery_point = part.model.flushed
            part.model.durable_start = part.model.start

    def roll(self, tp: TopicPartition) -> None:
        log = self.log(tp)
        try:
            log.roll(self.clock.now_ms())
        except OSError as error:
            raise self.manager.failed(log, error) from error

    def delete_records(self, tp: TopicPartition, to: int) -> None:
        log, model = self.log(tp), self.parts[tp].model
        log.set_high_watermark(model.end)
        log.advance_start(to)
        model.start = log.start_offset

    async def fill(self, *, steps: int = 60) -> None:
        """Give every partition several segments, aborted transactions, and perhaps an unflushed end."""
        for tp, part in self.parts.items():
            for _ in range(self.rng.randint(steps // 2, steps)):
                self.append(tp)
                if self.rng.random() < 0.1:
                    part.epoch += 1
                if self.rng.random() < 0.05:
                    self.roll(tp)
                if self.rng.random() < 0.05:
                    await self.flush(tp)
            self.append_data(tp, 11, transactional=True)
            self.end_transaction(tp, 11, aborted=True)
            if self.rng.random() < 0.5:
                self.delete_records(tp, self.rng.randint(0, part.model.flushed))
            if self.rng.random() < 0.7:
                await self.flush(tp)
            await self.checkpoint(part.path)
            for _ in range(self.rng.randint(0, 12)):
                self.append(tp)
            if self.rng.random() < 0.5:
                await self.flush(tp)
            sizes = f"{part.model.start}..{part.model.end}, flushed to {part.model.flushed}"
            self.tell(f"{tp} has {sizes}, recovery point {part.recovery_point}")

    def overwrite(self, path: str, content: bytes) -> None:
        """Replace the content of a file on the disk, without the broker's knowledge."""
        file = self.disk.open(path, create=True)
        file.truncate(0)
        file.write(0, [content])
        file.sync()
        file.close()
        self.disk.sync_directory(path.rpartition("/")[0])

    # Looking

    def consumer(self, tp: TopicPartition) -> Consumer:
        log = self.log(tp)
        return Consumer(log, self.executor, lambda error: self.manager.failed(log, error))

    async def look(
        self, tp: TopicPartition, *, committed: bool = True, times: bool = True
    ) -> list[BarnabasError]:
        """Read a partition in every way and return the errors; a wrong record raises AssertionError."""
        model = self.parts[tp].model
        try:
            consumer = self.consumer(tp)
        except StorageError as error:
            return [error]
        errors = await check_log(consumer, model)
        if committed:
            errors += await check_committed(consumer, model)
        if times:
            errors += await check_times(consumer, model)
        return errors

    async def is_well(self, *tps: TopicPartition, rounds: int = 2) -> None:
        """Check that these partitions (default: all) are usable: right records, and appends succeed."""
        for tp in tps or self.parts:
            for _ in range(rounds):
                errors = await self.look(tp)
                assert not errors, f"{tp}: {errors[:3]}"
                # Producers of earlier batches are still known; otherwise they would be refused.
                for producer_id in (1, 11, 12):
                    self.append_data(tp, producer_id, transactional=producer_id > 10)
                self.append(tp)
                await self.flush(tp)


def topic_id(tp: TopicPartition) -> Uuid:
    return Uuid(tp.topic.encode() * 16)


@contextmanager
def replayable(seed: int, story: list[str]) -> Iterator[None]:
    """Add the replay command and the last events to a failure."""
    try:
        yield
    except BaseException as error:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        last = "\n  ".join(story[-25:])
        error.add_note(f"replay with: BARNABAS_SEED={seed} pytest '{test}'\n  {last}")
        raise


def play(seed: int, act: Callable[[Broker], Coroutine[Any, Any, None]], broker: Broker | None = None) -> None:
    """Run a test's scenario on a broker of this seed."""
    broker = broker or Broker(seed)
    with replayable(seed, broker.story):
        asyncio.run(act(broker))
