"""A consumer that believes nothing: it checks every CRC and every offset, and compares with what was written.

A read is right, or it ends with an error that has a name. Everything else is an AssertionError: a record that
was not written, one that is left out, or a log that has more to give and gives nothing.
"""

from collections.abc import Callable
from typing import NamedTuple

from barnabas.base.errors import BarnabasError, Malformed
from barnabas.base.executor import Executor
from barnabas.records.control import ControlType, read_control_type
from barnabas.records.decode import decode_batch
from barnabas.records.header import BatchHeader, whole_batches
from barnabas.records.validate import check_batch
from barnabas.storage.errors import StorageError
from barnabas.storage.log import Log, LogRead
from barnabas.storage.lookup import TimedOffset, offset_for_time
from barnabas.storage.segment.txn_index import AbortedTxn
from barnabas.storage.warming import warmed
from support.log.model import LogModel, Rec

BYTES_MAX = 3000


class OutOfOrder(Malformed):
    """A batch whose offsets lie before where the consumer has got to."""


class Outcome(NamedTuple):
    """What a consumer got, up to which offset, and what stopped it before the end."""

    records: list[Rec]
    reached: int
    error: BarnabasError | None


class Consumer:
    """Reads one log. What the disk refuses is turned into an error of the log by `failed`."""

    def __init__(self, log: Log, executor: Executor, failed: Callable[[OSError], StorageError]) -> None:
        self.log = log
        self.executor = executor
        self.failed = failed

    async def read(self, offset: int, upto: int, bytes_max: int) -> bytes:
        def look() -> LogRead:
            return self.log.read(offset, upto=upto, bytes_max=bytes_max)

        try:
            return (await warmed(self.log, self.executor, look)).read()
        except OSError as error:
            raise self.failed(error) from error

    async def aborted(self, offset: int, upto: int) -> list[AbortedTxn]:
        try:
            return await warmed(self.log, self.executor, lambda: self.log.aborted_in(offset, upto))
        except OSError as error:
            raise self.failed(error) from error

    async def by_time(self, timestamp: int) -> TimedOffset | None:
        try:
            return await warmed(self.log, self.executor, lambda: offset_for_time(self.log, timestamp))
        except OSError as error:
            raise self.failed(error) from error

    async def everything(self, start: int, upto: int, bytes_max: int = BYTES_MAX) -> Outcome:
        """What read_uncommitted reads, markers included."""
        return await self._consume(start, upto, bytes_max, _Everything())

    async def committed(self, start: int, upto: int) -> Outcome:
        """What read_committed hands on: filtered by the aborted transactions that come with a fetch."""
        try:
            aborted = await self.aborted(start, upto)
        except (Malformed, StorageError) as error:
            return Outcome([], start, error)
        return await self._consume(start, upto, BYTES_MAX, _Committed(aborted))

    async def _consume(self, start: int, upto: int, bytes_max: int, taste: "_Everything") -> Outcome:
        records: list[Rec] = []
        position = start
        try:
            while position < upto:
                data = await self.read(position, upto, bytes_max)
                if not data:
                    break
                at = 0
                whole = whole_batches(data)
                assert whole.batches, f"not even one whole batch at offset {position}"
                while at < whole.size:
                    header = check_batch(data, at)
                    _check_order(header, position, is_first=at == 0)
                    if taste.takes(header, data, at):
                        found = [Rec(r.offset, r.timestamp, r.key, r.value) for r in decode_batch(data, at)]
                        records += [record for record in found if start <= record.offset < upto]
                    position = header.next_offset
                    at += header.size
        except (Malformed, StorageError) as error:
            return Outcome(records, position, error)
        return Outcome(records, position, None)


def _check_order(header: BatchHeader, position: int, *, is_first: bool) -> None:
    # Only the first batch of an answer may begin before what was asked for.
    seen = header.last_offset if is_first else header.base_offset
    if seen < position:
        raise OutOfOrder(f"offset {seen} comes when {position} is due", where="a fetched batch")


class _Everything:
    def takes(self, header: BatchHeader, data: bytes, at: int) -> bool:
        return True


class _Committed(_Everything):
    def __init__(self, aborted: list[AbortedTxn]) -> None:
        self.waiting = sorted(aborted, key=lambda txn: txn.first_offset)
        self.active: set[int] = set()

    def takes(self, header: BatchHeader, data: bytes, at: int) -> bool:
        while self.waiting and self.waiting[0].first_offset <= header.last_offset:
            self.active.add(self.waiting.pop(0).producer_id)
        if header.is_control:
            marker = decode_batch(data, at)
            if marker and read_control_type(marker[0].key) == ControlType.ABORT:
                self.active.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self.active)


async def check_log(consumer: Consumer, model: LogModel) -> list[BarnabasError]:
    """Read the log in every way. Return the errors that clients were given; none means that all is there."""
    log, errors = consumer.log, []
    start, end = model.start, model.end
    assert (log.start_offset, log.end_offset) == (start, end), "the log has another size than the model"
    errors += _judge(await consumer.everything(start, end), model.records(start, end), start, end)
    # An error in the middle must not hide what comes behind it.
    for batch in model.batches():
        base, stop = max(start, batch.base_offset), batch.next_offset
        errors += _judge(await consumer.everything(base, stop, 1), model.records(base, stop), base, stop)
    return errors


async def check_committed(consumer: Consumer, model: LogModel) -> list[BarnabasError]:
    """Read as read_committed does, from the start and from the middle."""
    log, errors = consumer.log, []
    log.set_high_watermark(model.end)
    stable, first_open = log.last_stable_offset, model.first_open()
    expected = model.end if first_open is None else max(first_open, model.start)
    assert stable == expected, f"the last stable offset is {stable}, not {expected}"
    for start in (model.start, (model.start + stable) // 2):
        outcome = await consumer.committed(start, stable)
        errors += _judge(outcome, model.committed(start, stable), start, stable)
    return errors


async def check_times(consumer: Consumer, model: LogModel) -> list[BarnabasError]:
    """Ask for offsets by time."""
    records, errors = model.records(model.start, model.end), list[BarnabasError]()
    for wanted in sorted({record.timestamp for record in records})[:: max(1, len(records) // 4)]:
        try:
            found = await consumer.by_time(wanted)
        except (Malformed, StorageError) as error:
            errors.append(error)
            continue
        first = next(record for record in records if record.timestamp >= wanted)
        assert found is not None, f"nothing of time {wanted}"
        assert found.offset == first.offset, f"time {wanted}"
    return errors


def _judge(outcome: Outcome, wanted: list[Rec], start: int, upto: int) -> list[BarnabasError]:
    """Everything up to where the consumer got must be there and right."""
    due = [record for record in wanted if record.offset < outcome.reached]
    if outcome.records != due:
        wrong = [record for record in outcome.records if record not in due]
        missing = [record for record in due if record not in outcome.records]
        raise AssertionError(
            f"from {start} to {outcome.reached}: wrong are {wrong[:3]}, missing are {missing[:3]}"
        )
    if outcome.error is not None:
        return [outcome.error]
    left = [record for record in wanted if record.offset >= outcome.reached]
    assert not left, f"nothing comes at {outcome.reached} of {upto}, and {left[:3]} are there"
    return []
