"""partition.metadata: the topic id of a partition's directory.

A topic that was deleted and recreated has the same name and another id. This file tells the two apart.
"""

import re
from typing import Final

from barnabas.base.errors import Malformed
from barnabas.base.ids import ZERO_UUID, Uuid, format_uuid, parse_uuid
from barnabas.storage.errors import CorruptFile
from barnabas.storage.files import FileSystem, write_atomically
from barnabas.storage.names import PARTITION_METADATA

# Like Kafka, accept later versions: they may add lines, but keep these two.
_FORMAT: Final = re.compile(rb"version:[ \t]+[0-9]{1,10}\r?\ntopic_id:[ \t]+(\S{1,64})\s*(?:\n|\Z)")


def read_partition_metadata(fs: FileSystem, directory: str) -> Uuid | None:
    """The topic id of the directory; None without the file."""
    path = f"{directory}/{PARTITION_METADATA}"
    try:
        content = fs.read(path)
    except FileNotFoundError:
        return None
    found = _FORMAT.match(content)
    if found is None:
        raise CorruptFile(path, "expected the lines 'version: 0' and 'topic_id: ...'")
    try:
        topic_id = parse_uuid(found.group(1).decode("latin-1"))
    except Malformed as error:
        raise CorruptFile(path, str(error)) from None
    if topic_id == ZERO_UUID:
        raise CorruptFile(path, "topic id must not be zero")
    return topic_id


def write_partition_metadata(fs: FileSystem, directory: str, topic_id: Uuid) -> None:
    assert topic_id != ZERO_UUID, f"{directory}: topic id is zero"
    content = f"version: 0\ntopic_id: {format_uuid(topic_id)}"
    write_atomically(fs, f"{directory}/{PARTITION_METADATA}", content.encode())
