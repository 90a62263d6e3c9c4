"""The topics that a client uses, and the leaders that it found to be wrong. Pure."""

from collections.abc import Iterable

from barnabas.base.ids import TopicPartition


class TopicsInUse:
    """Counts refreshes, so that a response only clears leaders that were forgotten before its request."""

    def __init__(self) -> None:
        self._touched_s: dict[str, float] = {}
        self._forgotten: dict[TopicPartition, tuple[int, int]] = {}
        self._refreshes = 0

    @property
    def names(self) -> Iterable[str]:
        return self._touched_s.keys()

    def touch(self, topic: str, now_s: float) -> None:
        self._touched_s[topic] = now_s

    def drop_idle(self, before_s: float) -> list[str]:
        """Drop and return the topics that were not used since `before_s`."""
        dropped = [topic for topic, at_s in self._touched_s.items() if at_s < before_s]
        for topic in dropped:
            del self._touched_s[topic]
        for tp in [each for each in self._forgotten if each.topic not in self._touched_s]:
            del self._forgotten[tp]
        return dropped

    def forget(self, tp: TopicPartition, epoch: int) -> None:
        """Note that the leader of this epoch is wrong."""
        self._forgotten[tp] = (epoch, self._refreshes)

    def is_forgotten(self, tp: TopicPartition, epoch: int) -> bool:
        found = self._forgotten.get(tp)
        return found is not None and epoch <= found[0]

    @property
    def has_forgotten(self) -> bool:
        return bool(self._forgotten)

    def start_refresh(self) -> int:
        """Start a refresh: leaders forgotten from here on are later than it."""
        self._refreshes += 1
        return self._refreshes

    def refreshed(self, topics: frozenset[str], began: int) -> None:
        """A refresh started at `began` succeeded: clear older entries of these topics."""
        for tp in [each for each, (_, at) in self._forgotten.items() if each.topic in topics and at < began]:
            del self._forgotten[tp]
