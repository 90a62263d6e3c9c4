""".kafka_cleanshutdown: the marker file that a clean shutdown writes and a start removes.

While it exists, every log of the directory is flushed to its end and its indexes need no recovery. So it must
be removed, durably, before the first append.
"""

import json
from contextlib import suppress
from typing import Final

from barnabas.base.values import value
from barnabas.storage.files import FileSystem, write_atomically

CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"

_SIZE_MAX: Final = 4096
_LONG: Final = range(-(2**63), 2**63)


@value
class CleanShutdown:
    """The last shutdown was clean. The epoch is that of the broker's last registration, if known."""

    broker_epoch: int | None


def read_clean_shutdown(fs: FileSystem, directory: str) -> CleanShutdown | None:
    """None after a crash. The existence of the file suffices: old versions of Kafka left it empty, and it is
    written after everything else. Only the epoch comes from its content."""
    try:
        content = fs.read(f"{directory}/{CLEAN_SHUTDOWN}")
    except FileNotFoundError:
        return None
    return CleanShutdown(_broker_epoch(content))


def write_clean_shutdown(fs: FileSystem, directory: str, broker_epoch: int) -> None:
    """Write the marker. Call this after all other writes to the directory."""
    content = f'{{"version":0,"brokerEpoch":{broker_epoch}}}'
    write_atomically(fs, f"{directory}/{CLEAN_SHUTDOWN}", content.encode())


def remove_clean_shutdown(fs: FileSystem, directory: str) -> None:
    """Remove the file, if it exists, and make the removal durable."""
    with suppress(FileNotFoundError):
        fs.remove(f"{directory}/{CLEAN_SHUTDOWN}")
    # Sync even if the file was missing: an earlier start may have removed it and crashed before the removal
    # reached the disk. After a power loss the file would be back.
    fs.sync_directory(directory)


def _broker_epoch(content: bytes) -> int | None:
    if len(content) > _SIZE_MAX:
        return None
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or type(fields.get("version", 0)) is not int:
        return None
    epoch = fields.get("brokerEpoch")
    return epoch if type(epoch) is int and epoch in _LONG else None
