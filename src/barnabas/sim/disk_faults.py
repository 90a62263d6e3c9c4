"""Fault injection for the simulated disk: power loss at a chosen operation, and errors on demand.

disk.py asks for the fate of every operation before executing it. names.py and inodes.py decide what a power
loss leaves.
"""

import errno
import os
from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import Final, Literal, NamedTuple

Kind = Literal[
    "open",
    "create",
    "read",
    "write",
    "truncate",
    "sync",
    "rename",
    "remove",
    "make_directory",
    "remove_directory",
    "sync_directory",
    "entries",
    "lock",
]


class PowerLoss(BaseException):
    """The machine has no power: all operations fail until SimDisk.crash().

    Not an Exception, because no program survives it to handle it; a `finally` of the code under test runs,
    but cannot access the disk any more.
    """


class Fate(NamedTuple):
    """The share of an operation that takes effect, from 0 to 1, and the error to raise then."""

    share: float = 1.0
    error: BaseException | None = None

    def end(self) -> None:
        if self.error is not None:
            raise self.error


_SUCCESS: Final = Fate()


@dataclass(slots=True)
class _Rule:
    path_prefix: str
    kinds: frozenset[str]
    count: int
    number: int


class Faults:
    """The planned faults, and a counter of operations."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._rules: list[_Rule] = []
        self._power_for: int | None = None
        self._is_off = False
        self.operations = 0

    def fail(self, path_prefix: str, kinds: Collection[Kind], count: int, number: int) -> None:
        self._rules.append(_Rule(path_prefix.lstrip("/"), frozenset(kinds), count, number))

    def forget(self) -> None:
        self._rules.clear()

    def lose_power_after(self, operations: int) -> None:
        assert operations > 0, operations
        self._power_for = operations

    def restore_power(self) -> None:
        self._power_for = None
        self._is_off = False

    def need_power(self) -> None:
        if self._is_off:
            raise PowerLoss

    def looking(self, kind: Kind, path: str) -> None:
        """Called before a read-only operation."""
        self.need_power()
        if self._rules:
            error = self._error_for(kind, path)
            if error is not None:
                raise error

    def changing(self, kind: Kind, path: str) -> Fate:
        """Called before an operation that changes the disk: execute the share of it, then call end()."""
        self.need_power()
        self.operations += 1
        if self._power_for is not None:
            self._power_for -= 1
            if self._power_for == 0:
                self._is_off = True
                return Fate(self._share(kind), PowerLoss())
        if self._rules:
            error = self._error_for(kind, path)
            if error is not None:
                return Fate(self._rng.random() if kind == "write" else 0.0, error)
        return _SUCCESS

    def _share(self, kind: Kind) -> float:
        """The share before a power loss: none, all or, for a write, a part."""
        shares = [0.0, 1.0, self._rng.random()] if kind == "write" else [0.0, 1.0]
        return self._rng.choice(shares)

    def _error_for(self, kind: Kind, path: str) -> OSError | None:
        for rule in self._rules:
            if kind in rule.kinds and path.lstrip("/").startswith(rule.path_prefix):
                rule.count -= 1
                if rule.count == 0:
                    self._rules.remove(rule)
                return OSError(rule.number, os.strerror(rule.number), path)
        return None


# Default error of fail().
DEFAULT_ERRNO: Final = errno.EIO
