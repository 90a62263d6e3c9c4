"""A file that nobody else can open for a while: a disk that does not answer, without a special disk.

The kernel has every open() of a leased file wait until the lease is given back, or for
/proc/sys/fs/lease-break-time (45 s). See fcntl(2).
"""

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def stuck(path: Path) -> Iterator[None]:
    """Other processes that open the file wait until the end of the block. It is made if it is not there."""
    # Tells the holder of a lease that somebody wants the file; its default is to end the process.
    previous = signal.signal(signal.SIGIO, signal.SIG_IGN)
    number = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.fcntl(number, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield
    finally:
        os.close(number)
        signal.signal(signal.SIGIO, previous)
