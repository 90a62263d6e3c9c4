"""From records to batches."""

import pytest

from barnabas.coordinators.runtime.writing import TooLarge, batches
from barnabas.records.decode import decode_batch
from barnabas.records.header import Codec


class Plain:
    def __init__(self, key: bytes, value: bytes | None) -> None:
        self.key, self.value = key, value

    def encoded(self) -> tuple[bytes, bytes | None]:
        return self.key, self.value


def test_records_of_one_decision_are_one_batch() -> None:
    (batch,) = batches(
        [Plain(b"a", b"1"), Plain(b"b", None)], now_ms=7, bytes_max=1_000, codec=Codec.NONE, together=True
    )

    assert [(one.key, one.value, one.timestamp) for one in decode_batch(batch)] == [
        (b"a", b"1", 7),
        (b"b", None, 7),
    ]


def test_what_belongs_together_is_refused_rather_than_torn() -> None:
    records = [Plain(b"a", bytes(600)), Plain(b"b", bytes(600))]

    with pytest.raises(TooLarge):
        batches(records, now_ms=0, bytes_max=1_000, codec=Codec.NONE, together=True)


def test_housekeeping_takes_as_many_batches_as_it_needs_and_keeps_its_order() -> None:
    records = [Plain(b"%d" % number, bytes(300)) for number in range(10)]

    built = batches(records, now_ms=0, bytes_max=1_000, codec=Codec.NONE, together=False)

    assert len(built) > 1
    assert all(len(batch) <= 1_000 for batch in built)
    assert [one.key for batch in built for one in decode_batch(batch)] == [b"%d" % n for n in range(10)]


@pytest.mark.parametrize("together", [True, False])
def test_one_record_that_no_batch_can_hold_is_refused(together: bool) -> None:
    with pytest.raises(TooLarge):
        batches([Plain(b"a", bytes(2_000))], now_ms=0, bytes_max=1_000, codec=Codec.NONE, together=together)


def test_batches_are_compressed_if_the_topic_is() -> None:
    (batch,) = batches(
        [Plain(b"a", bytes(5_000))], now_ms=0, bytes_max=10_000, codec=Codec.GZIP, together=True
    )

    assert len(batch) < 1_000
    assert decode_batch(batch)[0].value == bytes(5_000)
