"""Payloads of producer-perf-test: random letters, payloads of a file, or a counter.

The caller passes the random generator. It is used for every record, as in Kafka's tool, so that compression
does not see identical records.
"""

import re
from collections.abc import Callable
from random import Random
from typing import Final, TypeAlias

from barnabas.base.errors import BarnabasError

# Returns the value of record n.
Payload: TypeAlias = Callable[[int], bytes]

# Maps a random byte to one of the letters A to Z.
_LETTERS: Final = bytes(ord("A") + byte % 26 for byte in range(256))


def random_letters(size: int, rng: Random) -> Payload:
    randbytes = rng.randbytes
    return lambda number: randbytes(size).translate(_LETTERS)


def one_of(payloads: list[bytes], rng: Random) -> Payload:
    choose = rng.choice
    return lambda number: choose(payloads)


def counted(number: int) -> bytes:
    return b"%d" % number


class BadDelimiter(BarnabasError):
    """--payload-delimiter is not a valid regular expression."""


def split_payloads(content: bytes, delimiter: str) -> list[bytes]:
    """Split a file at `delimiter`, a regular expression. An empty piece at the end is not a payload.

    As Java's Scanner in Kafka's tool, this skips a delimiter at the beginning, and treats several delimiters
    in a row as empty payloads. Bytes that are not UTF-8 are kept unchanged.
    """
    try:
        pattern = re.compile(delimiter)
    except re.error as wrong:
        raise BadDelimiter(
            f"--payload-delimiter {delimiter} is not a valid regular expression: {wrong}"
        ) from None
    text = content.decode("utf-8", "surrogateescape")
    pieces: list[str] = []
    at = 0
    for found in pattern.finditer(text):
        if found.end() == found.start():
            continue
        if found.start() > 0:
            pieces.append(text[at : found.start()])
        at = found.end()
    if at < len(text):
        pieces.append(text[at:])
    return [piece.encode("utf-8", "surrogateescape") for piece in pieces]
