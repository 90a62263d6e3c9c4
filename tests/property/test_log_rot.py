"""A flipped bit in a broker's files gives the right record or a clear error, and affects no other partition.

One bit flips in a random file of one kind: while the logs are open, after a clean shutdown or after a power
loss. NOT_SEEN lists the bits whose damage Kafka's format cannot reveal, or that is not detected yet.

BARNABAS_SEED=17 pytest tests/property/test_log_rot.py             replays one seed
BARNABAS_SEEDS=1000 pytest -n 2 tests/property/test_log_rot.py     runs more seeds
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

import pytest

from barnabas.base.errors import Malformed
from barnabas.base.ids import TopicPartition
from barnabas.records.header import batch_headers
from barnabas.storage.directory.meta_properties import WrongDirectory
from barnabas.storage.errors import CorruptFile, CorruptLog, StorageError
from support.log.fault_world import HOMES, Broker, play
from support.scale import seeds

pytestmark = pytest.mark.kernel


class Rot(NamedTuple):
    """One flipped bit."""

    path: str
    at: int
    mask: int
    # For a .log: base offset of the damaged batch, and position of the damaged byte in it.
    batch: int = -1
    byte: int = -1

    @property
    def victims(self) -> set[TopicPartition]:
        """The partitions that may be affected: one, or all of a directory."""
        one = {tp for tp, path in HOMES.items() if f"{path}/{tp}/" in self.path}
        return one or {tp for tp, path in HOMES.items() if self.path.startswith(path)}


# Bits that the tests with random bits skip, because damage there cannot be detected or is not detected yet.
# Each has a test in test_log_rot_not_seen.py.
NOT_SEEN: Final[dict[str, Callable[[Rot], bool]]] = {
    # Base offset and leader epoch, which no CRC covers, and the last offset delta.
    ".log": lambda rot: rot.byte in (*range(8), *range(12, 16), *range(23, 27)),
}


def flip(broker: Broker, suffix: str) -> Rot:
    """Flip one bit in a random file with this suffix."""
    files = [path for path, size in broker.disk.tree().items() if path.endswith(suffix) and size]
    if suffix == ".snapshot":
        # Only the newest snapshot of a log is read.
        files = list({path.rpartition("/")[0]: path for path in sorted(files)}.values())
    not_seen = NOT_SEEN.get(suffix)
    for _ in range(1000):
        path = broker.rng.choice(files)
        at, mask = broker.rng.randrange(broker.disk.tree()[path]), 1 << broker.rng.randrange(8)
        rot = Rot(path, at, mask, *(hit(broker, path, at) if suffix == ".log" else ()))
        if not_seen is None or not not_seen(rot):
            broker.disk.rot(path, at, mask)
            broker.tell(f"rotten: {rot}")
            return rot
    raise AssertionError(f"no bit of a {suffix} file is left")


def hit(broker: Broker, path: str, at: int) -> tuple[int, int]:
    """Base offset of the batch at this byte, and the byte's position in it; -1 in a torn end of the log."""
    with suppress(Malformed):
        for position, header in batch_headers(broker.disk.read(path)):
            if position <= at < position + header.size:
                return header.base_offset, at - position
    return -1, -1


async def rot_something(broker: Broker, suffix: str) -> Rot:
    """Flip a bit while the broker runs, after a shutdown or after a crash; reopen the logs if it was down."""
    await broker.start()
    await broker.fill()
    how = "stop" if suffix == ".kafka_cleanshutdown" else broker.rng.choice(["go on", "stop", "crash"])
    if how == "go on":
        return flip(broker, suffix)
    if how == "stop":
        await broker.stop()
    else:
        broker.crash()
    rot = flip(broker, suffix)
    report = await broker.open()
    for tp, part in broker.parts.items():
        if part.path in report.failed:
            continue
        with suppress(StorageError):
            # Above the recovery point, a flipped bit cannot be distinguished from a torn write.
            is_cut = how == "crash" and tp in rot.victims and rot.batch >= part.recovery_point
            broker.settle(tp, floor=min(part.model.flushed, rot.batch) if is_cut else None)
    return rot


async def others_are_well(broker: Broker, rot: Rot) -> None:
    await broker.is_well(*(broker.parts.keys() - rot.victims), rounds=1)


@pytest.mark.parametrize("seed", seeds(8))
@pytest.mark.parametrize(
    "suffix",
    [
        ".index",
        ".timeindex",
        ".snapshot",
        "leader-epoch-checkpoint",
        "replication-offset-checkpoint",
        ".kafka_cleanshutdown",
    ],
)
def test_damage_to_a_file_that_can_be_rebuilt_loses_nothing(suffix: str, seed: int) -> None:
    async def story(broker: Broker) -> None:
        await rot_something(broker, suffix)

        await broker.is_well(rounds=1)
        await broker.stop()
        report = await broker.open()
        assert (report.broken, report.failed) == ({}, {})
        await broker.is_well(rounds=1)

    play(seed, story)


@pytest.mark.parametrize("seed", seeds(30))
def test_a_damaged_record_is_an_error_and_never_another_record(seed: int) -> None:
    async def story(broker: Broker) -> None:
        rot = await rot_something(broker, ".log")

        for tp in rot.victims:
            await broker.look(tp, times=False)
        await others_are_well(broker, rot)

    play(seed, story)


@pytest.mark.parametrize("seed", seeds(8))
@pytest.mark.parametrize("suffix", ["partition.metadata", "recovery-point-offset-checkpoint"])
def test_a_damaged_metadata_file_takes_at_most_its_log_offline(suffix: str, seed: int) -> None:
    async def story(broker: Broker) -> None:
        rot = await rot_something(broker, suffix)

        for tp in rot.victims:
            # Without a recovery point, damage cannot be distinguished from a torn write.
            for error in await broker.look(tp):
                assert isinstance(error, CorruptFile | CorruptLog)
        await others_are_well(broker, rot)

    play(seed, story)


@pytest.mark.parametrize("seed", seeds(8))
def test_a_damaged_txnindex_affects_only_read_committed_readers(seed: int) -> None:
    async def story(broker: Broker) -> None:
        rot = await rot_something(broker, ".txnindex")

        for tp in rot.victims:
            assert await broker.look(tp, committed=False) == []
        await others_are_well(broker, rot)

    play(seed, story)


@pytest.mark.parametrize("seed", seeds(12))
def test_a_damaged_start_offset_hides_or_reveals_records_or_is_refused(seed: int) -> None:
    async def story(broker: Broker) -> None:
        await broker.start()
        await broker.fill()
        await broker.stop()
        rot = flip(broker, "log-start-offset-checkpoint")

        await broker.open()

        for tp in rot.victims:
            if tp in broker.manager.broken:
                # The start offset cannot be above the end offset.
                assert isinstance(broker.manager.broken[tp], CorruptLog)
                continue
            broker.parts[tp].model.start = broker.log(tp).start_offset
            assert await broker.look(tp) == []
        await others_are_well(broker, rot)

    play(seed, story)


@pytest.mark.parametrize("seed", seeds(20))
def test_a_damaged_meta_properties_is_refused_or_makes_no_difference(seed: int) -> None:
    async def story(broker: Broker) -> None:
        try:
            rot = await rot_something(broker, "meta.properties")
        except WrongDirectory:
            # The file now names another owner. The operator must decide which directory is the wrong one.
            return
        for tp in rot.victims:
            assert broker.manager.get(tp) is None or await broker.look(tp) == []
        await others_are_well(broker, rot)

    play(seed, story)
