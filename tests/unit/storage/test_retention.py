"""Which segments retention deletes, and why."""

from dataclasses import replace

import pytest

from barnabas.storage.config import LogConfig
from barnabas.storage.retention import NO_TIMESTAMP, Decision, Reason, SegmentFacts, decide

NOW = 1_000_000
KEEP_ALL = LogConfig(retention_ms=-1, retention_bytes=-1)


def log_of(*sizes: int, youngest: int = NOW) -> list[SegmentFacts]:
    """Segments of ten offsets each, with these sizes and one youngest timestamp."""
    return [
        SegmentFacts(
            base_offset=10 * number,
            end_offset=10 * number + 10,
            size=size,
            largest_timestamp=youngest,
            modified_ms=NOW,
        )
        for number, size in enumerate(sizes)
    ]


def decided(
    segments: list[SegmentFacts], config: LogConfig, *, start: int = 0, high_watermark: int = 1000
) -> Decision:
    return decide(segments, config, log_start_offset=start, high_watermark=high_watermark, now_ms=NOW)


def gone(decision: Decision) -> list[tuple[int, Reason]]:
    return [(departure.base_offset, departure.reason) for departure in decision.departures]


def test_without_limits_everything_stays() -> None:
    decision = decided(log_of(100, 100, 100, youngest=0), KEEP_ALL, start=7)

    assert decision == Decision(departures=(), roll=False, log_start_offset=7, future_base_offset=None)


def test_segments_below_the_log_start_are_deleted() -> None:
    decision = decided(log_of(100, 100, 100), KEEP_ALL, start=20)

    assert gone(decision) == [(0, Reason.LOG_START), (10, Reason.LOG_START)]
    assert decision.departures[0].why == "log starts at 20"
    assert decision.log_start_offset == 20


def test_a_segment_that_holds_the_log_start_stays() -> None:
    assert gone(decided(log_of(100, 100, 100), KEEP_ALL, start=19)) == [(0, Reason.LOG_START)]


def test_the_active_segment_is_not_rolled_for_a_log_start_at_its_end() -> None:
    decision = decided(log_of(100, 100), KEEP_ALL, start=20)

    assert gone(decision) == [(0, Reason.LOG_START)]
    assert not decision.roll
    assert decision.log_start_offset == 20


@pytest.mark.parametrize(
    ("retention_bytes", "number"),
    [(300, 0), (299, 0), (201, 0), (200, 1), (199, 1), (101, 1), (100, 2), (1, 2), (0, 3)],
)
def test_a_log_never_shrinks_below_retention_bytes(retention_bytes: int, number: int) -> None:
    decision = decided(log_of(100, 100, 100), replace(KEEP_ALL, retention_bytes=retention_bytes))

    assert gone(decision) == [(10 * at, Reason.BYTES) for at in range(number)]
    assert decision.log_start_offset == 10 * number


def test_a_large_segment_stays_if_a_small_one_would_be_deleted() -> None:
    config = replace(KEEP_ALL, retention_bytes=200)

    assert gone(decided(log_of(150, 10, 100), config)) == []
    assert gone(decided(log_of(10, 150, 100), config)) == [(0, Reason.BYTES)]


def test_retention_bytes_exclude_records_below_the_log_start() -> None:
    decision = decided(log_of(100, 100, 100), replace(KEEP_ALL, retention_bytes=200), start=10)

    assert gone(decision) == [(0, Reason.LOG_START)]


def test_the_reason_says_how_many_bytes_remain() -> None:
    decision = decided(log_of(100, 100, 100), replace(KEEP_ALL, retention_bytes=150))

    assert [departure.why for departure in decision.departures] == ["retention.bytes=150, 200 bytes remain"]


@pytest.mark.parametrize(("age", "goes"), [(500, False), (501, True)])
def test_a_segment_is_deleted_when_its_youngest_record_exceeds_retention_ms(age: int, goes: bool) -> None:
    old, young = log_of(100, 100)
    old = replace(old, largest_timestamp=NOW - age)

    decision = decided([old, young], replace(KEEP_ALL, retention_ms=500))

    assert gone(decision) == ([(0, Reason.TIME)] if goes else [])


def test_a_young_segment_protects_older_ones_after_it() -> None:
    young, old, active = log_of(100, 100, 100)
    old = replace(old, largest_timestamp=0)

    assert gone(decided([young, old, active], replace(KEEP_ALL, retention_ms=500))) == []


def test_without_timestamps_the_file_s_time_counts() -> None:
    untimed, active = log_of(100, 100)
    untimed = replace(untimed, largest_timestamp=NO_TIMESTAMP, modified_ms=NOW - 501)

    decision = decided([untimed, active], replace(KEEP_ALL, retention_ms=500))

    assert gone(decision) == [(0, Reason.TIME)]
    assert "file (no timestamps)" in decision.departures[0].why


def test_a_file_that_was_just_written_is_young_without_timestamps() -> None:
    untimed, active = log_of(100, 100, youngest=NO_TIMESTAMP)

    assert gone(decided([untimed, active], replace(KEEP_ALL, retention_ms=500))) == []


def test_records_from_the_future_keep_their_segment_and_are_reported() -> None:
    ahead, old, active = log_of(100, 100, 100, youngest=0)
    ahead = replace(ahead, largest_timestamp=NOW + 1)

    decision = decided([ahead, old, active], replace(KEEP_ALL, retention_ms=500))

    assert gone(decision) == []
    assert decision.future_base_offset == 0
    above = decided([ahead, old, active], replace(KEEP_ALL, retention_ms=500), high_watermark=9)
    assert above.future_base_offset is None


def test_retention_ms_zero_deletes_everything_older_than_now() -> None:
    config = replace(KEEP_ALL, retention_ms=0)

    assert gone(decided(log_of(100, youngest=NOW), config)) == []
    assert gone(decided(log_of(100, youngest=NOW - 1), config)) == [(0, Reason.TIME)]


def test_an_expired_active_segment_is_rolled_and_deleted() -> None:
    decision = decided(log_of(100, 100, youngest=0), replace(KEEP_ALL, retention_ms=500))

    assert gone(decision) == [(0, Reason.TIME), (10, Reason.TIME)]
    assert decision.roll
    assert decision.log_start_offset == 20


def test_an_empty_active_segment_stays() -> None:
    config = replace(KEEP_ALL, retention_ms=500, retention_bytes=0)

    decision = decided(log_of(100, 0, youngest=0), config)

    assert gone(decision) == [(0, Reason.BYTES)]
    assert not decision.roll


def test_nothing_above_the_high_watermark_is_deleted() -> None:
    old = log_of(100, 100, 100, youngest=0)

    assert gone(decided(old, replace(KEEP_ALL, retention_ms=500), high_watermark=19)) == [(0, Reason.TIME)]
    assert gone(decided(old, replace(KEEP_ALL, retention_bytes=0), high_watermark=19)) == [(0, Reason.BYTES)]
    assert gone(decided(old, KEEP_ALL, start=20, high_watermark=19)) == [(0, Reason.LOG_START)]


def test_an_active_segment_with_records_above_the_high_watermark_stays() -> None:
    decision = decided(log_of(100, youngest=0), replace(KEEP_ALL, retention_ms=500), high_watermark=9)

    assert gone(decision) == []


def test_the_reason_names_bytes_before_time() -> None:
    config = replace(KEEP_ALL, retention_bytes=250, retention_ms=500)

    decision = decided(log_of(100, 100, 100, 100, youngest=0), config, start=10)

    assert gone(decision) == [(0, Reason.LOG_START), (10, Reason.TIME), (20, Reason.TIME), (30, Reason.TIME)]
    decision = decided(log_of(100, 100, 100, 100, youngest=0), config)
    assert gone(decision)[:2] == [(0, Reason.BYTES), (10, Reason.TIME)]


@pytest.mark.parametrize("policy", [("compact",), ()])
def test_without_the_policy_delete_only_the_log_start_counts(policy: tuple[str, ...]) -> None:
    config = LogConfig(cleanup_policy=policy, retention_ms=0, retention_bytes=0)

    decision = decided(log_of(100, 100, 100, youngest=0), config, start=10)

    assert gone(decision) == [(0, Reason.LOG_START)]


def test_compact_and_delete_together_delete_too() -> None:
    config = LogConfig(cleanup_policy=("compact", "delete"), retention_ms=500)

    assert gone(decided(log_of(100, 100, youngest=0), config)) == [(0, Reason.TIME), (10, Reason.TIME)]
