"""Which segments are compacted into one (pure), so that a log does not end up as many small files."""

from collections.abc import Sequence
from typing import Final

from barnabas.base.values import value

# Offsets in an index are 32 bits, counted from the base offset.
OFFSETS_MAX: Final = 0x7FFFFFFF


@value(kw_only=True)
class Source:
    """A segment that is to be compacted: no longer written to, and not to be removed meanwhile."""

    base_offset: int
    size: int
    index_size: int
    time_index_size: int


def group_sources(
    sources: Sequence[Source], *, segment_bytes: int, index_bytes: int, upper_bound: int
) -> list[tuple[Source, ...]]:
    """Neighbours that fit together into one segment, before anything is taken out of them.

    `upper_bound` is the offset at which the last source ends at the latest.
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
        # An empty segment has no offsets, and would be left over every 2**31 of them.
        and (source.size == 0 or last - group[0].base_offset <= OFFSETS_MAX)
    )
