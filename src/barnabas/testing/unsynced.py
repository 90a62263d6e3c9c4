"""The machine's files, without waiting for its disk: for data that is removed when the broker ends.

Bytes that are not synced are in the page cache, where everybody reads them; only a loss of power would take
them. One start and stop ask for 38 syncs, which on a disk with others at work is most of what they take.
"""

import os
from typing import Final

from barnabas.storage.disk import Descriptor, DiskFile, DiskFileSystem

_MODE: Final = 0o600


class UnsyncedFile(DiskFile):
    """A file that nobody expects to outlive the machine."""

    __slots__ = ()

    def sync(self) -> None:
        # A file that is closed or gone is an error still.
        self.fileno()


class UnsyncedFileSystem(DiskFileSystem):
    """Everything as on a disk, but the waiting."""

    def sync_directory(self, path: str) -> None:
        # It must be there all the same.
        os.stat(path or ".")

    def _file(self, path: str, flags: int) -> DiskFile:
        return UnsyncedFile(self._open_files, path, Descriptor(os.open(path, flags, _MODE)))
