"""Only Parquet files in Spark's metadata log count."""

import json
from pathlib import Path

from barnabas.cli.demo_parts.looking import landed_files


def write_entry(parquet: Path, name: str, *files: str) -> None:
    log = parquet / "_spark_metadata"
    log.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"path": f"file://{parquet}/{file}", "action": "add"}) for file in files]
    (log / name).write_text("\n".join(["v1", *lines]))


def test_there_are_no_files_before_spark_writes(tmp_path: Path) -> None:
    assert landed_files(tmp_path / "parquet") == []


def test_a_file_outside_of_the_metadata_log_does_not_count(tmp_path: Path) -> None:
    write_entry(tmp_path, "0", "a.parquet")
    write_entry(tmp_path, ".1.0000.tmp", "half%20written.parquet")
    (tmp_path / "left-by-a-killed-task.parquet").touch()

    assert landed_files(tmp_path) == [tmp_path / "a.parquet"]


def test_entries_are_merged_and_a_compact_one_repeats_earlier_ones(tmp_path: Path) -> None:
    write_entry(tmp_path, "8", "a%20b.parquet")
    write_entry(tmp_path, "9.compact", "a%20b.parquet", "c.parquet")
    write_entry(tmp_path, "10")

    assert landed_files(tmp_path) == [tmp_path / "a b.parquet", tmp_path / "c.parquet"]
