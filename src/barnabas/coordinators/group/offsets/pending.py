"""Offsets committed in open transactions.

They become visible with the producer's marker. Several producers may have pending offsets for the same
partition of a group, and plain commits may come in between: the last written one wins, whichever transaction
ends last.
"""

from collections.abc import Iterator

from barnabas.coordinators.group.offsets.record import OffsetRecord


class PendingOffsets:
    """Pending offsets, indexed by producer and by group."""

    def __init__(self) -> None:
        # In the order of writing. None is a superseded offset: it keeps the partition unstable until its
        # marker comes, but never becomes visible.
        self.by_group: dict[str, dict[tuple[str, int], dict[int, bytes | None]]] = {}
        self._by_producer: dict[int, set[tuple[str, str, int]]] = {}

    def __contains__(self, group: str) -> bool:
        return group in self.by_group

    def is_unstable(self, group: str, topic: str, partition: int) -> bool:
        partitions = self.by_group.get(group)
        return partitions is not None and (topic, partition) in partitions

    def groups(self) -> list[str]:
        return list(self.by_group)

    def partitions_of(self, group: str) -> list[tuple[str, int]]:
        return sorted(self.by_group.get(group, ()))

    def add(self, producer_id: int, group: str, topic: str, partition: int, value: bytes) -> None:
        by_producer = self.by_group.setdefault(group, {}).setdefault((topic, partition), {})
        # Removed first, so that it becomes the last one.
        by_producer.pop(producer_id, None)
        by_producer[producer_id] = value
        self._by_producer.setdefault(producer_id, set()).add((group, topic, partition))

    def supersede(self, group: str, topic: str, partition: int) -> None:
        """A later commit has superseded all pending offsets of this partition."""
        by_producer = self.by_group.get(group, {}).get((topic, partition))
        if by_producer is not None:
            for producer_id in by_producer:
                by_producer[producer_id] = None

    def remove(self, group: str, topic: str, partition: int) -> None:
        """The offset is deleted, including its pending ones."""
        by_producer = self.by_group.get(group, {}).get((topic, partition))
        for producer_id in list(by_producer or ()):
            self._take(producer_id, group, topic, partition)
            places = self._by_producer[producer_id]
            places.discard((group, topic, partition))
            if not places:
                del self._by_producer[producer_id]

    def end(self, producer_id: int, *, commit: bool) -> list[tuple[str, str, int, bytes]]:
        """End a transaction. Return the offsets it commits: group, topic, partition and value."""
        ended = []
        for group, topic, partition in sorted(self._by_producer.pop(producer_id, ())):
            if commit:
                self._supersede_older(producer_id, group, topic, partition)
            value = self._take(producer_id, group, topic, partition)
            if commit and value is not None:
                ended.append((group, topic, partition, value))
        return ended

    def entries(self) -> Iterator[tuple[int, OffsetRecord]]:
        """All pending offsets, as producer id and record."""
        for group, partitions in self.by_group.items():
            for (topic, partition), by_producer in partitions.items():
                for producer_id, value in by_producer.items():
                    yield producer_id, OffsetRecord(group, topic, partition, value)

    def _supersede_older(self, producer_id: int, group: str, topic: str, partition: int) -> None:
        by_producer = self.by_group[group][topic, partition]
        for other in by_producer:
            if other == producer_id:
                break
            by_producer[other] = None

    def _take(self, producer_id: int, group: str, topic: str, partition: int) -> bytes | None:
        partitions = self.by_group[group]
        by_producer = partitions[topic, partition]
        value = by_producer.pop(producer_id)
        if not by_producer:
            del partitions[topic, partition]
            if not partitions:
                del self.by_group[group]
        return value
