"""Log lines about a full disk, and their frequency."""

import pytest

from barnabas.storage.directory.full_disk import QUIET_MS, FullDisk


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_full_disk_is_logged_once_a_minute_with_failed_writes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = FullDisk("/data")

    for now_ms in range(0, QUIET_MS + 1, QUIET_MS // 10):
        disk.found_full(now_ms)

    first, second = lines(caplog)
    assert first == "disk full, writes fail until space is freed path=/data failed_writes=1"
    assert second.endswith("failed_writes=10")


def test_room_is_logged_once_and_only_after_a_line_that_there_was_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    disk = FullDisk("/data")

    disk.found_room()
    disk.found_full(0)
    disk.found_room()
    disk.found_room()
    disk.found_full(1)
    disk.found_room()

    assert [line.partition(" path")[0] for line in lines(caplog)] == [
        "disk full, writes fail until space is freed",
        "disk has room again",
    ]
    assert not disk.is_full
