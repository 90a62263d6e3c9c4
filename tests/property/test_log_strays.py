"""With missing or foreign files in its directories, a broker has the right records or a clear error.

CANNOT_BE_SEEN has the cases that Kafka's format cannot reveal, IS_NOT_SEEN those that are not detected yet,
each with the reason.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.storage.directory.meta_properties import WrongDirectory
from barnabas.storage.errors import StorageError
from barnabas.storage.removal import retain
from support.log.fault_world import T0, U0, V0, A, B, Broker, play

pytestmark = pytest.mark.kernel

Meddle = Callable[[Broker], None]

# The segments of T0, each with five batches of one record. An earlier segment was deleted.
BASES: Final = (5, 10, 15, 20)
END: Final = 25
HERE: Final = f"{A}/{T0}"
# The segments of another partition: the same offsets in other segments, and some before and after.
THERE: Final = f"{A}/{U0}"
FOREIGN: Final = (0, 10, 12, 20, 25, 30)
KINDS: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


def name(base: int, kind: str) -> str:
    return f"{base:020d}{kind}"


async def two_logs(broker: Broker) -> None:
    await broker.start()
    for tp, bases in ((T0, (0, *BASES)), (U0, FOREIGN)):
        for base in bases:
            while broker.parts[tp].model.end < base:
                next_batch(broker, tp)
            broker.roll(tp)
        for _ in range(5):
            next_batch(broker, tp)
    broker.append(V0)
    broker.delete_records(T0, BASES[0])
    await retain(broker.log(T0), broker.executor, broker.clock.now_ms())
    for tp in broker.parts:
        await broker.flush(tp)
    await broker.checkpoint(A)
    await broker.checkpoint(B)


def next_batch(broker: Broker, tp: TopicPartition) -> None:
    """Append one batch. Every fifth record is aborted by the marker after it."""
    end = broker.parts[tp].model.end
    if end % 5 == 1:
        broker.append_one(tp, producer_id=11)
    elif end % 5 == 2:
        broker.end_transaction(tp, 11, aborted=True)
    else:
        broker.append_one(tp)


# Changes to the files


def without(path: str) -> Meddle:
    return lambda broker: broker.disk.remove(path)


def with_file(path: str, content: bytes = b"") -> Meddle:
    return lambda broker: broker.overwrite(path, content)


def with_directory(path: str) -> Meddle:
    def meddle(broker: Broker) -> None:
        broker.disk.make_directory(path)

    return meddle


def with_foreign(base: int, *, named: int) -> Meddle:
    """Copy a segment of another partition, with its indexes."""

    def meddle(broker: Broker) -> None:
        for kind in KINDS:
            path = f"{THERE}/{name(base, kind)}"
            if path in broker.disk.tree():
                broker.overwrite(f"{HERE}/{name(named, kind)}", broker.disk.read(path))

    return meddle


GARBAGE: Final = bytes(range(256)) * 2
MEDDLING: Final[dict[str, Meddle]] = {
    **{f"no {base}{kind}": without(f"{HERE}/{name(base, kind)}") for base in BASES for kind in KINDS},
    "no epochs": without(f"{HERE}/leader-epoch-checkpoint"),
    "no metadata": without(f"{HERE}/partition.metadata"),
    "no recovery points": without(f"{A}/recovery-point-offset-checkpoint"),
    "no start offsets": without(f"{A}/log-start-offset-checkpoint"),
    "no high watermarks": without(f"{A}/replication-offset-checkpoint"),
    "no lock": without(f"{A}/.lock"),
    "no identity": without(f"{A}/meta.properties"),
    "notes": with_file(f"{HERE}/notes", GARBAGE),
    "a log of no offset": with_file(f"{HERE}/5.log", GARBAGE),
    "a kind of file that is not known": with_file(f"{HERE}/{name(12, '.bak')}", GARBAGE),
    "a snapshot within a segment": with_file(f"{HERE}/{name(12, '.snapshot')}", GARBAGE),
    "a snapshot behind the end": with_file(f"{HERE}/{name(99, '.snapshot')}", GARBAGE),
    "an index without a log": with_file(f"{HERE}/{name(99, '.index')}", GARBAGE),
    "a directory like a log": with_directory(f"{HERE}/{name(12, '.log')}"),
    "a directory for the clean stop": with_directory(f"{A}/.kafka_cleanshutdown.tmp"),
    **{f"an empty log at {at}": with_file(f"{HERE}/{name(at, '.log')}") for at in (0, 3, 12, 22, 25, 99)},
    **{f"garbage as {at}.log": with_file(f"{HERE}/{name(at, '.log')}", GARBAGE) for at in (0, 12, 25, 99)},
    **{f"garbage in {at}.log": with_file(f"{HERE}/{name(at, '.log')}", GARBAGE) for at in BASES},
    **{f"foreign {base} as {base}": with_foreign(base, named=base) for base in FOREIGN},
    "foreign 12 as 10": with_foreign(12, named=10),
    "foreign 20 as 10": with_foreign(20, named=10),
    "foreign 10 as 15": with_foreign(10, named=15),
    "foreign 0 as 99": with_foreign(0, named=99),
    "foreign 30 as 25": with_foreign(30, named=25),
}

# Kafka's format has no means to detect these.
NO_PARTITION: Final = "a batch does not name its partition"
NO_ABORTED: Final = "a segment without aborted transactions has no such file either"
CANNOT_BE_SEEN: Final = {
    **{("stop", f"no {base}.txnindex"): NO_ABORTED for base in BASES},
    **{("crash", f"no {base}.txnindex"): NO_ABORTED for base in BASES[:-1]},
    **{(how, f"foreign {at} as {at}"): NO_PARTITION for how in ("stop", "crash") for at in (0, 10, 20)},
    ("crash", "no 5.log"): "it looks like a segment that was deleted before its indexes",
    ("crash", "foreign 25 as 25"): NO_PARTITION,
    ("crash", "foreign 30 as 25"): NO_PARTITION,
}
# The remaining files reveal these, but they are not detected yet.
LEFT_INDEXES: Final = "the remaining indexes show that there was a segment"
OFFSETS: Final = "its offsets do not match its name or the neighbouring segments"
IS_NOT_SEEN: Final = {
    ("stop", "no 5.log"): LEFT_INDEXES,
    **{
        (how, what): OFFSETS
        for how in ("stop", "crash")
        for what in (
            "an empty log at 12",
            "foreign 12 as 12",
            "foreign 12 as 10",
            "foreign 10 as 15",
        )
    },
}


@pytest.mark.parametrize("how", ["stop", "crash"])
@pytest.mark.parametrize("what", MEDDLING)
def test_a_missing_or_foreign_file_gives_the_right_records_or_a_clear_error(
    what: str, how: str, request: pytest.FixtureRequest
) -> None:
    not_seen = CANNOT_BE_SEEN.get((how, what)) or IS_NOT_SEEN.get((how, what))
    if not_seen is not None:
        request.applymarker(pytest.mark.xfail(strict=True, raises=AssertionError, reason=not_seen))

    async def story(broker: Broker) -> None:
        await two_logs(broker)
        if how == "stop":
            await broker.stop()
        else:
            broker.crash()
        MEDDLING[what](broker)

        try:
            failed = (await broker.open()).failed
        except WrongDirectory:
            return
        if A not in failed:
            await is_right_or_an_error(broker)
            await broker.is_well(U0)
        await broker.is_well(V0)

    play(0, story)


async def is_right_or_an_error(broker: Broker) -> None:
    model = broker.parts[T0].model
    with suppress(StorageError):
        log = broker.log(T0)
        if log.start_offset < model.start:
            # A file before the others lowers the start offset. Only deleted records may reappear.
            again = await broker.consumer(T0).everything(log.start_offset, model.start)
            assert set(again.records) <= set(model.records(0, model.start))
            log.set_high_watermark(model.end)
            log.advance_start(model.start)
    await broker.look(T0)
