"""Lines end where Java's BufferedReader ends them, for any chunk boundaries."""

import pytest

from barnabas.cli.console.lines import LineSplitter, LineTooLong


def lines_of(*pieces: bytes) -> list[bytes]:
    splitter = LineSplitter()
    found = [line for piece in pieces for line in splitter.feed(piece)]
    return found + splitter.end()


def test_every_kind_of_line_end_ends_a_line() -> None:
    assert lines_of(b"a\nb\r\nc\rd") == [b"a", b"b", b"c", b"d"]


def test_empty_lines_are_lines_but_an_empty_rest_is_not() -> None:
    assert lines_of(b"\n\na\n") == [b"", b"", b"a"]
    assert lines_of(b"") == []


@pytest.mark.parametrize("at", range(1, 12))
def test_chunk_boundaries_do_not_change_the_lines(at: int) -> None:
    data = b"one\r\ntwo\n\rx"

    assert lines_of(data[:at], data[at:]) == lines_of(data) == [b"one", b"two", b"", b"x"]


def test_a_line_that_ends_with_a_carriage_return_is_returned_at_once() -> None:
    splitter = LineSplitter()

    assert splitter.feed(b"a\r") == [b"a"]
    assert splitter.feed(b"\nb\n") == [b"b"]


def test_line_ends_that_only_python_knows_are_kept() -> None:
    assert lines_of(b"a\x0bb\x0cc\x1cd\xc2\x85e\n") == [b"a\x0bb\x0cc\x1cd\xc2\x85e"]


def test_a_line_beyond_the_limit_is_an_error() -> None:
    splitter = LineSplitter(line_bytes_max=10)
    splitter.feed(b"12345")

    with pytest.raises(LineTooLong, match="10 bytes"):
        splitter.feed(b"678901")
