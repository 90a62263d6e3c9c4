"""`barnabas storage info`: print the metadata of log directories, in the format of Kafka's tool."""

from collections.abc import Sequence
from pathlib import Path

from barnabas.base.ids import format_uuid
from barnabas.storage.directory.meta_properties import (
    META_PROPERTIES,
    MetaProperties,
    WrongDirectory,
    read_meta_properties,
)
from barnabas.storage.errors import CorruptFile
from barnabas.storage.files import FileSystem


def print_info(fs: FileSystem, paths: Sequence[str]) -> int:
    """Print directories, metadata and problems. Return 1 if there is a problem."""
    found: list[str] = []
    metas: list[MetaProperties] = []
    problems: list[str] = []
    for path in sorted(paths):
        if not Path(path).is_dir():
            problems.append(f"{path} is not a directory" if Path(path).exists() else f"{path} does not exist")
            continue
        found.append(path)
        try:
            meta = read_meta_properties(fs, path)
        except (OSError, CorruptFile, WrongDirectory) as error:
            where = f"{path}/{META_PROPERTIES}: "
            problems.append(f"Error loading {where}{str(error).removeprefix(where)}")
            continue
        if meta is None:
            problems.append(f"{path} is not formatted.")
            continue
        metas.append(meta)
        problems += _mismatch(metas[0], meta)
    _print_list("Found log directory:", "Found log directories:", found)
    if metas:
        print(f"Found metadata: {{{_shown(metas[0])}}}\n")
    _print_list("Found problem:", "Found problems:", problems)
    return 1 if problems else 0


def _mismatch(first: MetaProperties, other: MetaProperties) -> list[str]:
    if first.cluster_id != other.cluster_id:
        return ["Mismatched cluster IDs between storage directories."]
    if first.node_id != other.node_id:
        return ["Mismatched node IDs between storage directories."]
    return []


def _shown(meta: MetaProperties) -> str:
    fields = {"cluster.id": meta.cluster_id, "node.id": str(meta.node_id), "version": "1"}
    if meta.directory_id is not None:
        fields["directory.id"] = format_uuid(meta.directory_id)
    return ", ".join(f"{name}={fields[name]}" for name in sorted(fields))


def _print_list(one: str, several: str, lines: Sequence[str]) -> None:
    if lines:
        print(one if len(lines) == 1 else several)
        for line in lines:
            print(f"  {line}")
        print()
