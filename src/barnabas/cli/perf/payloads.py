"""What a producer sends to be measured: random letters, lines of a file, or a count.

The dice are handed in and are thrown for every record, as in Kafka's tool, so that compression does not
find the same record again and again.
"""

import re
from collections.abc import Callable
from random import Random
from typing import Final, TypeAlias

from barnabas.base.errors import BarnabasError

# The n-th record's value.
Payload: TypeAlias = Callable[[int], bytes]

# A byte of the dice becomes one of the letters A to Z.
_LETTERS: Final = bytes(ord("A") + byte % 26 for byte in range(256))


def random_letters(size: int, rng: Random) -> Payload:
    throw = rng.randbytes
    return lambda number: throw(size).translate(_LETTERS)


def one_of(payloads: list[bytes], rng: Random) -> Payload:
    choose = rng.choice
    return lambda number: choose(payloads)


def counted(number: int) -> bytes:
    return b"%d" % number


class BadDelimiter(BarnabasError):
    """A --payload-delimiter that is no regular expression."""


def split_payloads(content: bytes, delimiter: str) -> list[bytes]:
    """The payloads of a file. `delimiter` is a regular expression; what is empty at the end is no payload.

    Java's Scanner, which Kafka's tool uses, passes over a delimiter at the beginning and takes several
    delimiters in a row for as many empty payloads; so do we. Bytes that are no text stay what they are.
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
