"""What Python workers of Spark hold at most, while something is done."""

import os
import threading
from collections.abc import Callable
from pathlib import Path


def peak_while(run: Callable[[], object]) -> float:
    """Megabytes of the largest worker."""
    peak, ended = [0.0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            peak[0] = max([peak[0], *map(_megabytes, _workers())])

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        run()
    finally:
        ended.set()
        watcher.join()
    if not peak[0]:
        raise RuntimeError("no worker of Spark was seen")
    return peak[0]


def _workers() -> list[int]:
    """Processes of this session that Spark started to run Python (their group is one of their own)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and os.getsid(0) == _session(int(entry.name)):
            command = _read(entry / "cmdline")
            if b"pyspark.daemon" in command:
                found.append(int(entry.name))
    return found


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _megabytes(pid: int) -> float:
    for line in _read(Path(f"/proc/{pid}/status")).splitlines():
        if line.startswith(b"VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0
