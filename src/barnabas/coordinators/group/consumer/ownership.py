"""The current holder of each partition, so that no two members have it at once."""

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.consumer.member import ConsumerMember, Held


class Ownership:
    """The member by partition that is assigned it or still has to revoke it."""

    __slots__ = ("_holders",)

    def __init__(self) -> None:
        self._holders: dict[Uuid, dict[int, str]] = {}

    def holder(self, topic_id: Uuid, partition: int) -> str | None:
        holders = self._holders.get(topic_id)
        return None if holders is None else holders.get(partition)

    def replace(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """Update the holders after a change of a member."""
        if old is not None:
            if new is not None and old.assigned is new.assigned and old.revoking is new.revoking:
                return
            self._release(old.id, old.assigned)
            self._release(old.id, old.revoking)
        if new is not None:
            self._take(new.id, new.assigned)
            self._take(new.id, new.revoking)

    def _take(self, member_id: str, held: Held) -> None:
        for topic_id, partitions in held.items():
            self._holders.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def _release(self, member_id: str, held: Held) -> None:
        for topic_id, partitions in held.items():
            holders = self._holders.get(topic_id)
            if holders is None:
                continue
            for partition in partitions:
                # In a compacted log, the record of the next holder may come first.
                if holders.get(partition) == member_id:
                    del holders[partition]
            if not holders:
                del self._holders[topic_id]
