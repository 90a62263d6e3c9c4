"""Disks that fail for a broker in a process of its own: a small one that fills up, and calls that fail.

A small disk is a tmpfs, which only root may mount. Failing calls are made by failing_calls.c, which needs a C
compiler and Linux. A test that cannot have either is skipped, and says why.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("failing_calls.c")


@contextmanager
def small_disk(path: Path, megabytes: int) -> Iterator[Path]:
    """A directory on a disk of that size, until the end of the block."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a small disk is a tmpfs, and only root on Linux can mount one")
    path.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(path)]
    mounted = subprocess.run(mount, capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"a tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield path
    finally:
        # Lazily: a broker that a failed test leaves behind still has files open.
        subprocess.run(["umount", "-l", str(path)], check=True)


def fill_up(disk: Path, name: str = "filler") -> Path:
    """Take all the room that is left, to the last page; return the file to remove."""
    filler = disk / name
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return filler
    return filler


class FailingCalls:
    """Rules of which calls fail. `environment` loads them into a broker that is started with it."""

    def __init__(self, root: Path) -> None:
        if sys.platform != "linux":
            pytest.skip("failing calls are loaded with LD_PRELOAD, which needs Linux")
        library = root / "failing_calls.so"
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            pytest.skip(f"failing calls need a C compiler: {error}")
        self._rules = root / "failing_calls.txt"
        self.environment = {"LD_PRELOAD": str(library), "BARNABAS_FAULTS": str(self._rules)}

    def fail(self, call: str, errno: int, part: str) -> None:
        """Every `call` (read, write, sync) on a file whose path contains `part` fails from here on."""
        fresh = self._rules.with_suffix(".new")
        fresh.write_text(f"{call} {errno} {part}\n")
        fresh.rename(self._rules)

    def mend(self) -> None:
        self._rules.unlink()
