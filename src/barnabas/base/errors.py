"""The base classes of all errors that Barnabas raises on purpose.

Each package derives its own errors from these and gives them the facts that a reader needs. An exception that
is not derived from BarnabasError is a bug.
"""

from typing import TypeVar

E = TypeVar("E", bound=BaseException)


class BarnabasError(Exception):
    """The base class of all expected errors."""


class Malformed(BarnabasError):
    """Input that cannot be decoded.

    The only error of every decoder: for any bytes from a peer or a disk, a decoder returns a value or raises
    this. `what` says what is wrong, `where` names the field or the byte.
    """

    def __init__(self, what: str, *, where: str) -> None:
        super().__init__(f"{where}: {what}")
        self.what = what
        self.where = where


def kept(error: E) -> E:
    """Drop the traceback of an error that is stored in an object.

    A traceback refers to the frames that the error passed, and so to the object: a reference cycle.
    """
    return error.with_traceback(None)
