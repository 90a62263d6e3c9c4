"""Compile and match regular expressions with google-re2, which matches in linear time.

Patterns from clients are never compiled by `re`: with that, a short expression can keep a broker busy for
hours. Linear time is still long for a large pattern and many names: see is_small() and match_some().
"""

from collections.abc import Sequence
from typing import Any, Final

from barnabas.base.errors import BarnabasError

# The maximum length of a string in a request.
PATTERN_BYTES_MAX: Final = 32_767
# Compiling holds the interpreter's lock: a pattern of this weight takes about 20 ms.
PATTERN_WEIGHT_MAX: Final = 65_536
# Maximum instructions of a compiled pattern; an alternation of 500 topic names has about 20,000.
PROGRAM_SIZE_MAX: Final = 40_000
# Memory of RE2 for one pattern: its program and its cache of states.
PATTERN_MEMORY_BYTES_MAX: Final = 1 << 20
# Patterns of this weight compile in well under a millisecond.
SMALL_WEIGHT_MAX: Final = 2_000
# Work per call of match_some(), about 20 ms. A name costs its length times the size of the program, at a few
# nanoseconds each at worst.
WORK_AT_ONCE: Final = 4_000_000
NAMES_AT_ONCE: Final = 500
# How much of a pattern an error message repeats.
_TOLD_CHARS_MAX: Final = 200
# Constructs that compile slowly, with their cost relative to a plain character: Unicode classes, repetitions,
# sets. The cost of consecutive optional parts grows with the square of their number.
_WEIGHTS: Final = (
    (r"\p", 800),
    (r"\P", 800),
    ("{", 600),
    ("[", 100),
    ("?", 20),
    ("*", 20),
    ("+", 20),
    ("|", 1),
)
_NOT_ASCII_WEIGHT: Final = 20


class NotRe2(BarnabasError):
    """Not a valid RE2 regular expression, or too large. `reason` is RE2's message."""

    def __init__(self, text: str, reason: str) -> None:
        told = text if len(text) <= _TOLD_CHARS_MAX else f"{text[:_TOLD_CHARS_MAX]}..."
        super().__init__(f"`{told}` is not a valid RE2 regular expression: {reason}")
        self.reason = reason


def weight_of(text: str) -> int:
    """The estimated time to compile a pattern, relative to a plain character."""
    others = 0 if text.isascii() else sum(not char.isascii() for char in text)
    return (
        len(text) + sum(text.count(part) * weight for part, weight in _WEIGHTS) + others * _NOT_ASCII_WEIGHT
    )


def is_small(text: str) -> bool:
    """Whether a pattern is compiled in well under a millisecond."""
    return weight_of(text) <= SMALL_WEIGHT_MAX


def compile_re2(text: str) -> Any:
    """Return a pattern with the methods of `re`, but without groups. NotRe2 if it is invalid or too large."""
    # Imported here because the import is slow and few processes need it.
    import re2  # type: ignore[import-untyped]

    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        # A command-line argument that is not valid UTF-8.
        raise NotRe2(text, "invalid UTF-8") from None
    if size > PATTERN_BYTES_MAX:
        raise NotRe2(text, f"pattern too large: {size} bytes, the limit is {PATTERN_BYTES_MAX}")
    weight = weight_of(text)
    if weight > PATTERN_WEIGHT_MAX:
        raise NotRe2(
            text,
            f"pattern too large: compile weight {weight}, the limit is {PATTERN_WEIGHT_MAX}",
        )
    options = re2.Options()
    # Errors are raised; RE2 would also write them to stderr.
    options.log_errors = False
    # Capture groups cost time for each group at each character, and are never read.
    options.never_capture = True
    options.max_mem = PATTERN_MEMORY_BYTES_MAX
    try:
        pattern = re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if error.args else ""
        raise NotRe2(text, reason) from None
    finally:
        # The re2 module caches 128 patterns, whatever their size.
        re2.purge()
    if pattern.programsize > PROGRAM_SIZE_MAX:
        raise NotRe2(
            text, f"pattern too large: {pattern.programsize} instructions, the limit is {PROGRAM_SIZE_MAX}"
        )
    return pattern


def match_some(pattern: Any, names: Sequence[str], start: int) -> tuple[int, list[str]]:
    """Match whole names from `start` on for about 20 ms. Return where to continue, and the matching names.

    Run this in another thread: RE2 releases the interpreter's lock while it matches a name.
    """
    found = []
    work = at = 0
    size = pattern.programsize
    for at in range(start, min(start + NAMES_AT_ONCE, len(names))):
        name = names[at]
        if pattern.fullmatch(name):
            found.append(name)
        work += size * (len(name) + 1)
        if work >= WORK_AT_ONCE:
            break
    return at + 1, found
