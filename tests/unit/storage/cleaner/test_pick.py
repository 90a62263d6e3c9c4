from dataclasses import replace

from barnabas.storage.cleaner.pick import Candidate, DirtyLog, DirtySegment, pick, weigh
from barnabas.storage.config import LogConfig

NOW_MS = 1_000_000


def segment(base_offset: int, size: int = 100, *, largest: int = 1000, first: int = 0) -> DirtySegment:
    return DirtySegment(base_offset=base_offset, size=size, largest_timestamp=largest, first_timestamp=first)


def log(
    *segments: DirtySegment,
    name: str = "topic-0",
    checkpoint: int | None = None,
    start_offset: int = 0,
    end_offset: int = 100,
    last_stable_offset: int = 100,
    **settings: str,
) -> DirtyLog:
    overrides = {key.replace("_", "."): value for key, value in settings.items()}
    return DirtyLog(
        name=name,
        segments=segments,
        start_offset=start_offset,
        end_offset=end_offset,
        last_stable_offset=last_stable_offset,
        checkpoint=checkpoint,
        config=LogConfig.parse({"cleanup.policy": "compact", **overrides}),
    )


FOUR = (segment(0), segment(10), segment(20), segment(30))


def bounds(found: Candidate) -> tuple[int, int]:
    return found.dirty_start, found.upper_bound


def test_everything_but_the_active_segment_is_dirty_at_first() -> None:
    found = weigh(log(*FOUR), NOW_MS)

    assert bounds(found) == (0, 30)
    assert (found.clean_bytes, found.dirty_bytes, found.dirty_ratio) == (0, 300, 1.0)
    assert found.checkpoint_reset is None


def test_compacted_segments_are_clean() -> None:
    found = weigh(log(*FOUR, checkpoint=20), NOW_MS)

    assert bounds(found) == (20, 30)
    assert (found.clean_bytes, found.dirty_bytes) == (200, 100)


def test_open_transactions_bound_the_compacted_range() -> None:
    assert bounds(weigh(log(*FOUR, last_stable_offset=20), NOW_MS)) == (0, 20)
    # A segment is compacted as a whole or not at all.
    assert bounds(weigh(log(*FOUR, last_stable_offset=25), NOW_MS)) == (0, 20)


def test_segments_within_the_min_lag_and_later_ones_are_not_compacted() -> None:
    young = segment(10, largest=NOW_MS - 100)
    lagging = log(segment(0), young, segment(20), segment(30), min_compaction_lag_ms="200")

    assert bounds(weigh(lagging, NOW_MS)) == (0, 10)
    assert bounds(weigh(lagging, NOW_MS + 100)) == (0, 30)


def test_a_young_segment_that_is_clean_bounds_nothing() -> None:
    young = segment(0, largest=NOW_MS)
    lagging = log(young, *FOUR[1:], checkpoint=10, min_compaction_lag_ms="200")
    assert bounds(weigh(lagging, NOW_MS)) == (10, 30)


def test_a_log_of_one_segment_is_never_worth_it() -> None:
    found = weigh(log(segment(0), min_cleanable_dirty_ratio="0"), NOW_MS)
    assert (bounds(found), found.dirty_bytes, found.is_worth_it) == ((0, 0), 0, False)


def test_a_log_that_is_clean_is_not_worth_it() -> None:
    found = weigh(log(*FOUR, checkpoint=30, min_cleanable_dirty_ratio="0"), NOW_MS)
    assert (found.dirty_ratio, found.is_worth_it) == (0.0, False)


def test_the_ratio_must_be_above_the_least() -> None:
    half_dirty = log(*FOUR, segment(40), checkpoint=20, min_cleanable_dirty_ratio="0.5")
    found = weigh(half_dirty, NOW_MS)
    assert found.dirty_ratio == 0.5
    assert not found.is_worth_it
    lower = replace(half_dirty, config=LogConfig.parse({"min.cleanable.dirty.ratio": "0.49"}))
    assert weigh(lower, NOW_MS).is_worth_it


def test_an_overdue_log_is_compacted_whatever_its_dirty_ratio() -> None:
    segments = [segment(at, first=NOW_MS - 100) for at in (0, 10, 20, 30)]
    waiting = log(*segments, checkpoint=20, min_cleanable_dirty_ratio="1", max_compaction_lag_ms="60")

    found = weigh(waiting, NOW_MS)

    assert (found.overdue_ms, found.is_worth_it) == (40, True)
    assert weigh(waiting, NOW_MS - 40).overdue_ms == 0


def test_only_closed_dirty_segments_with_a_timestamp_can_be_overdue() -> None:
    segments = (segment(0, first=1), segment(10, first=0), segment(20, first=-1), segment(30, first=1))
    waiting = log(*segments, checkpoint=10, max_compaction_lag_ms="60")
    assert weigh(waiting, NOW_MS).overdue_ms == 0


def test_an_overdue_log_without_compactable_segments_is_skipped() -> None:
    segments = [segment(at, first=1) for at in (0, 10, 20)]
    open_transaction = log(*segments, last_stable_offset=0, max_compaction_lag_ms="60")

    found = weigh(open_transaction, NOW_MS)

    assert found.overdue_ms > 0
    assert not found.is_worth_it


def test_a_checkpoint_below_the_log_start_is_ignored() -> None:
    found = weigh(log(*FOUR[1:], checkpoint=5, start_offset=12), NOW_MS)

    assert bounds(found) == (12, 30)
    assert found.checkpoint_reset == "topic-0: cleaner checkpoint 5 is below the log start offset 12"


def test_a_checkpoint_above_the_log_end_is_ignored() -> None:
    found = weigh(log(*FOUR, checkpoint=35, end_offset=34), NOW_MS)

    assert bounds(found) == (0, 30)
    assert found.checkpoint_reset == "topic-0: cleaner checkpoint 35 is above the log end offset 34"


def test_a_checkpoint_in_the_middle_of_a_segment_makes_all_of_it_dirty() -> None:
    found = weigh(log(*FOUR, checkpoint=15), NOW_MS)
    assert (bounds(found), found.dirty_bytes) == ((15, 30), 200)


def test_the_dirtiest_log_is_next() -> None:
    cleaner = log(*FOUR, name="a-0", checkpoint=10, min_cleanable_dirty_ratio="0.1")
    dirtiest = log(*FOUR, name="b-0", min_cleanable_dirty_ratio="0.1")
    barely = log(*FOUR, name="c-0", checkpoint=20, min_cleanable_dirty_ratio="0.1")

    found = pick([cleaner, dirtiest, barely], NOW_MS)

    assert found is not None
    assert found.log.name == "b-0"


def test_nothing_is_next_if_nothing_is_worth_it() -> None:
    assert pick([log(*FOUR, checkpoint=30), log(segment(0))], NOW_MS) is None
    assert pick([], NOW_MS) is None


def test_logs_that_also_delete_are_picked_too() -> None:
    found = pick([log(*FOUR, cleanup_policy="compact,delete")], NOW_MS)
    assert found is not None
