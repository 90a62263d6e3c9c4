"""Mistakes in the quorum and its disk work."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest

from barnabas.raft import following, leading
from barnabas.raft.driver.delivery import Delivery
from barnabas.raft.driver.engine import Engine
from barnabas.raft.driver.log_work import LogWork
from barnabas.raft.driver.metadata_log import MetadataLog
from barnabas.raft.effects import TruncateTo
from barnabas.raft.facts import Election, OffsetAndEpoch
from barnabas.raft.log_view import cut_for
from barnabas.raft.quorum_state import QUORUM_STATE, format_quorum_state
from barnabas.storage.files import FileSystem

Plant = Callable[[pytest.MonkeyPatch], None]


def vote_before_it_is_on_disk(patch: pytest.MonkeyPatch) -> None:
    """The answer leaves while the vote is still being written."""
    persist = Engine._persist

    async def later(self: Engine, election: Election) -> None:
        self._own(persist(self, election))

    patch.setattr(Engine, "_persist", later)


def commit_of_older_epochs(patch: pytest.MonkeyPatch) -> None:
    """The high watermark counts records of earlier epochs before one of the own epoch."""

    def count_majority(member: Any, role: Any) -> None:
        offset = role.replicas.majority_offset()
        if offset is not None and offset > 0:
            member.advance_high_watermark(offset)

    patch.setattr(leading, "count_majority", count_majority)


def truncation_below_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """A follower truncates a little more than necessary, without looking at its high watermark."""

    def truncate(member: Any, role: Any, event: Any) -> None:
        member.emit(TruncateTo(max(member.log.start_offset, cut_for(member.log, event.diverging) - 3)))

    patch.setattr(following, "_truncate", truncate)


def snapshot_id_off_by_one(patch: pytest.MonkeyPatch) -> None:
    """A snapshot is named by the offset of its last record, not by the next one."""
    take = Delivery._take

    def off_by_one(self: Delivery, batch: Any) -> None:
        take(self, batch)

    async def deliver(self: Delivery, upto: int) -> Any:
        batches = await original(self, upto)
        if batches and batches[-1].records:
            self.last = OffsetAndEpoch(batches[-1].last_offset, batches[-1].epoch)
        return batches

    original = Delivery.deliver
    patch.setattr(Delivery, "_take", off_by_one)
    patch.setattr(Delivery, "deliver", deliver)


def leader_without_a_majority_stays(patch: pytest.MonkeyPatch) -> None:
    """A leader whose followers do not fetch any more goes on."""
    patch.setattr(leading, "_check_quorum_at", lambda member: None)


def failed_sync_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """The log counts as synced although the sync has failed."""

    async def sync(self: LogWork) -> None:
        async with self.log.log.turn():
            job = self.log.begin_sync()
            with suppress(OSError):
                await self.executor.run(job.run)
            self.log.finish_sync(job)

    patch.setattr(LogWork, "sync", sync)


def recovery_point_beyond_the_synced_log(patch: pytest.MonkeyPatch) -> None:
    """The recovery point says that everything is on the disk, so a restart does not look."""
    point = MetadataLog.checkpoint_job

    def checkpoint_job(self: MetadataLog, high_watermark: int) -> Any:
        self.log.recovery_point = self.log.end_offset
        return point(self, self.log.end_offset)

    patch.setattr(MetadataLog, "checkpoint_job", checkpoint_job)


def rename_without_a_directory_sync(patch: pytest.MonkeyPatch) -> None:
    """A new quorum-state has its name only in memory."""

    def write(fs: FileSystem, directory: str, election: Election, voters: Iterable[int]) -> None:
        path = f"{directory}/{QUORUM_STATE}"
        file = fs.open(path + ".tmp", create=True)
        file.truncate(0)
        file.write(0, [format_quorum_state(election, voters)])
        file.sync()
        file.close()
        fs.rename(path + ".tmp", path)

    async def persist(self: LogWork, election: Election, voters: Iterable[int]) -> None:
        log = self.log.log
        await self.executor.run(partial(write, log.fs, log.directory, election, voters))

    patch.setattr(LogWork, "persist", persist)


def append_is_acknowledged_before_it_is_committed(patch: pytest.MonkeyPatch) -> None:
    """The caller gets its offset as soon as the leader has the record."""
    append = Engine.append

    def at_once(self: Engine, epoch: int, records: Any) -> "asyncio.Future[int]":
        appended = append(self, epoch, records)
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        done.set_result(self.work.log.log.end_offset - 1)
        appended.add_done_callback(lambda future: future.cancelled() or future.exception())
        return done

    patch.setattr(Engine, "append", at_once)


PLANTS: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (
        vote_before_it_is_on_disk,
        commit_of_older_epochs,
        truncation_below_the_high_watermark,
        snapshot_id_off_by_one,
        leader_without_a_majority_stays,
        failed_sync_is_ignored,
        recovery_point_beyond_the_synced_log,
        rename_without_a_directory_sync,
        append_is_acknowledged_before_it_is_committed,
    )
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Run the code with one of the mistakes."""
    with pytest.MonkeyPatch.context() as patch:
        PLANTS[name](patch)
        yield
