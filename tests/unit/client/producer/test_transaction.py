"""The text form of a prepared transaction."""

import pytest

from barnabas.client.producer.transaction import (
    NOTHING_PREPARED,
    BadPreparedTransaction,
    PreparedTransaction,
)


@pytest.mark.parametrize(
    ("prepared", "text"),
    [
        (PreparedTransaction(7, 3), "7:3"),
        (PreparedTransaction(0, 0), "0:0"),
        (PreparedTransaction(2**63 - 1, 2**15 - 1), "9223372036854775807:32767"),
        (NOTHING_PREPARED, ""),
    ],
)
def test_parse_reads_the_output_of_str(prepared: PreparedTransaction, text: str) -> None:
    assert str(prepared) == text
    assert PreparedTransaction.parse(text) == prepared


def test_an_empty_text_is_no_transaction() -> None:
    assert PreparedTransaction.parse(None) is NOTHING_PREPARED
    assert not NOTHING_PREPARED
    assert PreparedTransaction(0, 0)
    assert (NOTHING_PREPARED.producer_id, NOTHING_PREPARED.epoch) == (-1, -1)


def test_another_epoch_is_another_transaction() -> None:
    assert PreparedTransaction(7, 3) == PreparedTransaction(7, 3)
    assert PreparedTransaction(7, 3) != PreparedTransaction(7, 4)
    assert PreparedTransaction(7, 3) != PreparedTransaction(8, 3)


@pytest.mark.parametrize(
    "text",
    [
        "7",
        ":",
        "7:",
        ":3",
        "7:3:1",
        "-1:-1",
        "7:-3",
        "seven:3",
        "7 :3",
        "7:٣",
        "9223372036854775808:0",
        "7:32768",
        "9" * 5_000 + ":0",
    ],
)
def test_an_invalid_text_is_refused(text: str) -> None:
    with pytest.raises(BadPreparedTransaction):
        PreparedTransaction.parse(text)
