""".kafka_cleanshutdown: the file that a clean stop leaves behind, and a start takes away.

While it is there, every log of the directory is known to be flushed to its end, and its indexes are
believed without recovery. So it must be gone, durably, before the first byte is appended.
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
    """The last stop was clean. The epoch is that of the broker's last registration, if the file says so."""

    broker_epoch: int | None


def read_clean_shutdown(fs: FileSystem, directory: str) -> CleanShutdown | None:
    """None after a crash. What the file holds does not matter for its being there: it was empty in old
    versions of Kafka, and it is written after everything else. Only the epoch needs its content."""
    try:
        content = fs.read(f"{directory}/{CLEAN_SHUTDOWN}")
    except FileNotFoundError:
        return None
    return CleanShutdown(_broker_epoch(content))


def write_clean_shutdown(fs: FileSystem, directory: str, broker_epoch: int) -> None:
    """The very last thing that is written."""
    content = f'{{"version":0,"brokerEpoch":{broker_epoch}}}'
    write_atomically(fs, f"{directory}/{CLEAN_SHUTDOWN}", content.encode())


def remove_clean_shutdown(fs: FileSystem, directory: str) -> None:
    """Take the file away, durably. It need not be there."""
    with suppress(FileNotFoundError):
        fs.remove(f"{directory}/{CLEAN_SHUTDOWN}")
    # Also if it was not there: a start before this one may have removed it and died before the removal
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
