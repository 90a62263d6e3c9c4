"""Payloads of producer-perf-test."""

from random import Random

import pytest

from barnabas.cli.perf.payloads import BadDelimiter, counted, one_of, random_letters, split_payloads


def test_random_payloads_are_capital_letters_and_differ() -> None:
    payload = random_letters(100, Random(1))

    first, second = payload(0), payload(1)

    assert len(first) == len(second) == 100
    assert first != second
    assert first.isalpha()
    assert first.isupper()


def test_every_payload_of_a_file_is_sent() -> None:
    payload = one_of([b"a", b"b", b"c"], Random(1))

    assert {payload(number) for number in range(100)} == {b"a", b"b", b"c"}


def test_a_count_counts() -> None:
    assert [counted(number) for number in (0, 9, 10)] == [b"0", b"9", b"10"]


@pytest.mark.parametrize(
    ("content", "delimiter", "payloads"),
    [
        (b"a\n\nb\n", "\n", [b"a", b"", b"b"]),
        (b"\na", "\n", [b"a"]),
        (b"\n\na\n\n", "\n", [b"", b"a", b""]),
        (b"a,b;c", ",|;", [b"a", b"b", b"c"]),
        (b"a,b;c", "(,|;)", [b"a", b"b", b"c"]),
        (b"\n", "\n", []),
        (b"\xff\nb", "\n", [b"\xff", b"b"]),
    ],
)
def test_a_file_is_split_as_javas_scanner_splits(
    content: bytes, delimiter: str, payloads: list[bytes]
) -> None:
    assert split_payloads(content, delimiter) == payloads


def test_an_invalid_delimiter_is_rejected() -> None:
    with pytest.raises(BadDelimiter, match=r"--payload-delimiter \["):
        split_payloads(b"a", "[")
