from barnabas.storage.cleaner.grouping import OFFSETS_MAX, Source, group_sources


def source(base_offset: int, size: int = 10, index_size: int = 0, time_index_size: int = 0) -> Source:
    return Source(base_offset=base_offset, size=size, index_size=index_size, time_index_size=time_index_size)


def grouped(
    *sources: Source, segment_bytes: int = 100, index_bytes: int = 100, upper_bound: int = 1000
) -> list[list[int]]:
    groups = group_sources(
        sources, segment_bytes=segment_bytes, index_bytes=index_bytes, upper_bound=upper_bound
    )
    return [[one.base_offset for one in group] for group in groups]


def test_adjacent_segments_are_grouped_up_to_the_size_of_a_segment() -> None:
    assert grouped(source(0), source(5), source(9), segment_bytes=20) == [[0, 5], [9]]


def test_a_segment_that_is_too_large_stays_alone() -> None:
    assert grouped(source(0, 500), source(5), source(9)) == [[0], [5, 9]]


def test_indexes_must_fit_too() -> None:
    one, two = source(0, index_size=60), source(5, index_size=60)
    assert grouped(one, two) == [[0], [5]]
    one, two = source(0, time_index_size=60), source(5, time_index_size=60)
    assert grouped(one, two) == [[0], [5]]


def test_offsets_of_a_group_fit_into_an_index() -> None:
    far = OFFSETS_MAX + 1
    assert grouped(source(0), source(5), source(far), upper_bound=far + 9) == [[0, 5], [far]]
    assert grouped(source(0), source(5), upper_bound=far) == [[0, 5]]
    assert grouped(source(0), source(5), upper_bound=far + 1) == [[0], [5]]


def test_empty_segments_are_grouped_whatever_their_offsets() -> None:
    far = 3 * OFFSETS_MAX
    assert grouped(source(0), source(far, size=0), upper_bound=2 * far) == [[0, far]]


def test_nothing_gives_no_groups() -> None:
    assert grouped() == []
