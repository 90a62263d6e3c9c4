"""The roots of every error that Barnabas raises on purpose.

A room derives its own from these and gives each the facts that a reader needs. What is not derived
from BarnabasError is a bug.
"""

from typing import TypeVar

E = TypeVar("E", bound=BaseException)


class BarnabasError(Exception):
    """Something that can go wrong and has a name."""


class Malformed(BarnabasError):
    """Bytes from outside that are not what they claim to be.

    The one error type of every decoder: whatever a peer or a disk hands in, a decoder answers with a
    value or with this. `what` says what is wrong, `where` names the field or the byte.
    """

    def __init__(self, what: str, *, where: str) -> None:
        super().__init__(f"{where}: {what}")
        self.what = what
        self.where = where


def kept(error: E) -> E:
    """An error to keep in an object, without its traceback.

    A traceback refers to the frames that the error passed, and so to the object: a cycle.
    """
    return error.with_traceback(None)
