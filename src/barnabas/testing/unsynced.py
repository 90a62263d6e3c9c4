"""A file system without fsync, for data that is removed when the broker ends.

Unsynced bytes are in the page cache, where every process reads them; only a power loss would lose them. One
start and stop request 38 syncs, which take most of their time on a busy disk.
"""

import os
from typing import Final

from barnabas.storage.disk import Descriptor, DiskFile, DiskFileSystem

_MODE: Final = 0o600


class UnsyncedFile(DiskFile):
    """A file that need not survive a power loss."""

    __slots__ = ()

    def sync(self) -> None:
        # Syncing a closed file is still an error.
        self.fileno()


class UnsyncedFileSystem(DiskFileSystem):
    """DiskFileSystem without syncing."""

    def sync_directory(self, path: str) -> None:
        # A missing directory is still an error.
        os.stat(path or ".")

    def _file(self, path: str, flags: int) -> DiskFile:
        return UnsyncedFile(self._open_files, path, Descriptor(os.open(path, flags, _MODE)))
