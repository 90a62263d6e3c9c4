"""What to start, as plain values: they pass from the user's thread to the broker's."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic to create. Without partitions it has as many as num.partitions says."""

    name: str
    partitions: int | None
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """A broker. Port 0 is any that is free."""

    settings: Mapping[str, str]
    directory: str
    is_temporary: bool
    port: int
    topics: tuple[TopicPlan, ...]
