"""Which member holds a partition now: what keeps two members from having it at once."""

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.consumer.member import ConsumerMember, Held


class Ownership:
    """By partition the member that has it, or has still to give it up."""

    __slots__ = ("_holders",)

    def __init__(self) -> None:
        self._holders: dict[Uuid, dict[int, str]] = {}

    def holder(self, topic_id: Uuid, partition: int) -> str | None:
        holders = self._holders.get(topic_id)
        return None if holders is None else holders.get(partition)

    def replace(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """One member for another, in what they hold."""
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
                # Of a log that was compacted, the record of the next holder may have been read before.
                if holders.get(partition) == member_id:
                    del holders[partition]
            if not holders:
                del self._holders[topic_id]
