"""Building batches from records."""

from collections.abc import Callable

import pytest

from barnabas.coordinators.decision.outcome import InTransaction
from barnabas.coordinators.runtime.writing import (
    NextBatch,
    OutcomeBatch,
    TooLarge,
    batches,
    one_batch,
    stamped_batch,
)
from barnabas.records.decode import decode_batch
from barnabas.records.header import Codec, read_header

pytestmark = pytest.mark.kernel

PLACE = NextBatch(70, 3, 1_000, Codec.NONE)


class Plain:
    def __init__(self, key: bytes, value: bytes | None) -> None:
        self.key, self.value = key, value

    def encoded(self) -> tuple[bytes, bytes | None]:
        return self.key, self.value


def test_records_of_one_decision_are_one_batch() -> None:
    batch = one_batch([Plain(b"a", b"1"), Plain(b"b", None)], PLACE, 7)

    assert [(one.key, one.value, one.timestamp) for one in decode_batch(batch)] == [
        (b"a", b"1", 7),
        (b"b", None, 7),
    ]


def test_a_batch_is_built_for_its_place() -> None:
    records, stamp = [Plain(b"a", b"1")], InTransaction(7, 1)
    gathered = OutcomeBatch(PLACE)
    gathered.add(records, 0)

    built = [
        one_batch(records, PLACE, 0),
        gathered.build(),
        batches(records, PLACE, 0)[0],
        stamped_batch(records, stamp, PLACE, 0),
    ]

    headers = [read_header(batch) for batch in built]
    assert [(one.base_offset, one.leader_epoch) for one in headers] == [(70, 3)] * 4


def test_an_atomic_write_is_refused_rather_than_split() -> None:
    records = [Plain(b"a", bytes(600)), Plain(b"b", bytes(600))]

    with pytest.raises(TooLarge):
        one_batch(records, PLACE, 0)


def test_housekeeping_takes_as_many_batches_as_it_needs_and_keeps_its_order() -> None:
    records = [Plain(b"%d" % number, bytes(300)) for number in range(10)]

    built = batches(records, PLACE, 0)

    assert len(built) > 1
    assert all(len(batch) <= 1_000 for batch in built)
    assert [one.key for batch in built for one in decode_batch(batch)] == [b"%d" % n for n in range(10)]


@pytest.mark.parametrize("build", [batches, one_batch])
def test_one_record_that_no_batch_can_hold_is_refused(build: Callable[..., object]) -> None:
    with pytest.raises(TooLarge):
        build([Plain(b"a", bytes(2_000))], PLACE, 0)


def test_several_decisions_are_gathered_until_the_next_may_not_fit() -> None:
    gathered = OutcomeBatch(PLACE)
    taken = 0
    while gathered.add([Plain(b"%d" % taken, bytes(100)), Plain(b"%d" % taken, None)], taken):
        taken += 1

    batch = gathered.build()
    assert 500 < len(batch) <= 1_000
    assert gathered.outcomes == taken
    assert [(one.key, one.timestamp) for one in decode_batch(batch)] == [
        (b"%d" % n, n) for n in range(taken) for _ in range(2)
    ]


def test_batches_are_compressed_if_the_topic_is() -> None:
    batch = one_batch([Plain(b"a", bytes(5_000))], NextBatch(0, 0, 10_000, Codec.GZIP), 0)

    assert len(batch) < 1_000
    assert decode_batch(batch)[0].value == bytes(5_000)
