"""What to start, as plain values: they pass from the user's thread to the broker's."""

from collections.abc import Mapping

from barnabas.base.values import value


@value
class TopicPlan:
    """A topic to create. Without partitions it has as many as num.partitions says."""

    name: str
    partitions: int | None
    settings: Mapping[str, str]


@value
class Plan:
    """A broker. Port 0 is any that is free."""

    settings: Mapping[str, str]
    directory: str
    is_temporary: bool
    port: int
    topics: tuple[TopicPlan, ...]
