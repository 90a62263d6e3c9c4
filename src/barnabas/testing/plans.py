"""Plain values that describe what to start; passed from the user's thread to the broker's."""

from collections.abc import Mapping

from barnabas.base.values import value


@value
class TopicPlan:
    """A topic to create. `partitions` defaults to num.partitions."""

    name: str
    partitions: int | None
    settings: Mapping[str, str]


@value
class Plan:
    """A broker to start. Port 0 means any free port."""

    settings: Mapping[str, str]
    directory: str
    is_temporary: bool
    port: int
    topics: tuple[TopicPlan, ...]
