"""Group adjacent segments that are compacted into one (pure), to avoid many small files."""

from collections.abc import Sequence
from typing import Final

from barnabas.base.values import value

# Offsets in an index are 32 bits, counted from the base offset.
OFFSETS_MAX: Final = 0x7FFFFFFF


@value(kw_only=True)
class Source:
    """A closed segment that is to be compacted."""

    base_offset: int
    size: int
    index_size: int
    time_index_size: int


def group_sources(
    sources: Sequence[Source], *, segment_bytes: int, index_bytes: int, upper_bound: int
) -> list[tuple[Source, ...]]:
    """Group adjacent sources whose sizes before compaction fit into one segment.

    The last source ends at or before the offset `upper_bound`.
    """
    groups: list[list[Source]] = []
    for number, source in enumerate(sources):
        end = sources[number + 1].base_offset if number + 1 < len(sources) else upper_bound
        if groups and _fits(groups[-1], source, end - 1, segment_bytes, index_bytes):
            groups[-1].append(source)
        else:
            groups.append([source])
    return [tuple(group) for group in groups]


def _fits(group: Sequence[Source], source: Source, last: int, segment_bytes: int, index_bytes: int) -> bool:
    return (
        sum(one.size for one in group) + source.size <= segment_bytes
        and sum(one.index_size for one in group) + source.index_size <= index_bytes
        and sum(one.time_index_size for one in group) + source.time_index_size <= index_bytes
        # An empty segment always fits: it has no offsets, and no later run would get rid of it.
        and (source.size == 0 or last - group[0].base_offset <= OFFSETS_MAX)
    )
