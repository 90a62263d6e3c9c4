"""When a snapshot is due."""

import pytest

from barnabas.metadata.snapshot import SnapshotSchedule


@pytest.mark.parametrize(
    ("bytes_since", "ms_since", "due"),
    [(99, 999, False), (100, 0, True), (1, 1_000, True), (0, 1_000_000, False), (1, 999, False)],
)
def test_after_so_many_bytes_or_so_much_time_with_anything_new(
    bytes_since: int, ms_since: int, due: bool
) -> None:
    schedule = SnapshotSchedule(bytes_max=100, interval_ms=1_000)

    assert schedule.is_due(bytes_since=bytes_since, ms_since=ms_since) is due


def test_an_interval_of_zero_is_never() -> None:
    schedule = SnapshotSchedule(bytes_max=100, interval_ms=0)

    assert not schedule.is_due(bytes_since=99, ms_since=1 << 60)
