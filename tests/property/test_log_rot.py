"""Rotten bits in a broker's files: the right record or a clear error, and the others notice nothing.

One bit flips in some file of a kind, while the logs are open, after a clean stop or after a power loss. What
Kafka's format gives no means to see, and what nobody sees yet, is left out by name: see NOT_SEEN.

BARNABAS_SEED=17 pytest tests/property/test_log_rot.py             replays one seed
BARNABAS_SEEDS=1000 pytest -n 2 tests/property/test_log_rot.py     tries more of them
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
from support.fault_world import HOMES, Broker, play
from support.scale import seeds

pytestmark = pytest.mark.kernel


class Rot(NamedTuple):
    """One bit that flips."""

    path: str
    at: int
    mask: int
    # For a .log: the batch that is hit, and which of its bytes.
    batch: int = -1
    byte: int = -1

    @property
    def victims(self) -> set[TopicPartition]:
        """The partitions that may notice: one, or all of a directory."""
        one = {tp for tp, path in HOMES.items() if f"{path}/{tp}/" in self.path}
        return one or {tp for tp, path in HOMES.items() if self.path.startswith(path)}


# What is left out of the tests with random bits, because no reader can see it, or because none does yet. Each
# has a test of its own in test_log_rot_not_seen.py.
NOT_SEEN: Final[dict[str, Callable[[Rot], bool]]] = {
    # The base offset and the leader epoch, which no CRC covers, and how many offsets the batch says it has.
    ".log": lambda rot: rot.byte in (*range(8), *range(12, 16), *range(23, 27)),
}


def flip(broker: Broker, suffix: str) -> Rot:
    """Flip one bit in some file of a kind."""
    files = [path for path, size in broker.disk.tree().items() if path.endswith(suffix) and size]
    if suffix == ".snapshot":
        # Of many only the newest is read.
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
    """The batch that has this byte, and which of its bytes it is; -1 in what a power loss has torn."""
    with suppress(Malformed):
        for position, header in batch_headers(broker.disk.read(path)):
            if position <= at < position + header.size:
                return header.base_offset, at - position
    return -1, -1


async def rot_something(broker: Broker, suffix: str) -> Rot:
    """Have a bit flip in one of three states of the broker, and open it again if it was down."""
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
            # Behind the recovery point nobody can tell what is rotten from what is torn.
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
def test_what_can_be_made_anew_may_rot(suffix: str, seed: int) -> None:
    async def story(broker: Broker) -> None:
        await rot_something(broker, suffix)

        await broker.is_well(rounds=1)
        await broker.stop()
        report = await broker.open()
        assert (report.broken, report.failed) == ({}, {})
        await broker.is_well(rounds=1)

    play(seed, story)


@pytest.mark.parametrize("seed", seeds(30))
def test_a_rotten_record_is_an_error_and_never_another_record(seed: int) -> None:
    async def story(broker: Broker) -> None:
        rot = await rot_something(broker, ".log")

        for tp in rot.victims:
            await broker.look(tp, times=False)
        await others_are_well(broker, rot)

    play(seed, story)


@pytest.mark.parametrize("seed", seeds(8))
@pytest.mark.parametrize("suffix", ["partition.metadata", "recovery-point-offset-checkpoint"])
def test_a_rotten_note_about_a_log_puts_it_out_of_service_at_worst(suffix: str, seed: int) -> None:
    async def story(broker: Broker) -> None:
        rot = await rot_something(broker, suffix)

        for tp in rot.victims:
            # Without a recovery point, what is torn cannot be told from what is damaged.
            for error in await broker.look(tp):
                assert isinstance(error, CorruptFile | CorruptLog)
        await others_are_well(broker, rot)

    play(seed, story)


@pytest.mark.parametrize("seed", seeds(8))
def test_a_rotten_index_of_aborted_transactions_harms_only_who_asks_for_it(seed: int) -> None:
    async def story(broker: Broker) -> None:
        rot = await rot_something(broker, ".txnindex")

        for tp in rot.victims:
            assert await broker.look(tp, committed=False) == []
        await others_are_well(broker, rot)

    play(seed, story)


@pytest.mark.parametrize("seed", seeds(12))
def test_a_rotten_start_offset_shows_too_much_or_too_little_or_is_refused(seed: int) -> None:
    async def story(broker: Broker) -> None:
        await broker.start()
        await broker.fill()
        await broker.stop()
        rot = flip(broker, "log-start-offset-checkpoint")

        await broker.open()

        for tp in rot.victims:
            if tp in broker.manager.broken:
                # A start behind the end cannot be.
                assert isinstance(broker.manager.broken[tp], CorruptLog)
                continue
            broker.parts[tp].model.start = broker.log(tp).start_offset
            assert await broker.look(tp) == []
        await others_are_well(broker, rot)

    play(seed, story)


@pytest.mark.parametrize("seed", seeds(20))
def test_a_rotten_identity_is_refused_or_makes_no_difference(seed: int) -> None:
    async def story(broker: Broker) -> None:
        try:
            rot = await rot_something(broker, "meta.properties")
        except WrongDirectory:
            # It names another owner now. Which directory is the wrong one is for a person to say.
            return
        for tp in rot.victims:
            assert broker.manager.get(tp) is None or await broker.look(tp) == []
        await others_are_well(broker, rot)

    play(seed, story)
