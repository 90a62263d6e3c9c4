"""Our own client in groups."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.client import ClientError
from barnabas.client.admin import CommittedOffset
from barnabas.client.blocking import Admin, Consumer
from barnabas.client.group.offsets import OffsetAndMetadata
from support.clients.barnabas_words import refused, seen
from support.clients.client import RECONNECT_MS_MAX, Seen
from support.clients.group_client import (
    HEARTBEAT_MS,
    MOMENT_MS,
    SESSION_MS,
    Committed,
    GroupSeen,
    Handed,
    MemberOptions,
)

T = TypeVar("T")


def _try(call: Callable[[], T]) -> T:
    try:
        return call()
    except ClientError as error:
        raise refused(error) from None


class BarnabasMember:
    def __init__(self, address: str, topic: str, options: MemberOptions) -> None:
        settings: dict[str, object] = {
            "bootstrap.servers": address,
            "group.id": options.group,
            "group.protocol": options.protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
        }
        if options.protocol == "classic":
            settings |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}
        if options.instance is not None:
            settings["group.instance.id"] = options.instance
        self._topic = topic
        self._handed = Handed(self._poll)
        self._consumer = Consumer(settings)
        self._consumer.subscribe([topic])

    def partitions(self) -> frozenset[int]:
        self._handed.work()
        return frozenset(each.partition for each in self._consumer.assignment)

    def read(self, count: int) -> list[Seen]:
        return self._handed.read(count)

    def _poll(self) -> list[Seen]:
        return list(map(seen, _try(lambda: self._consumer.batch(timeout_ms=MOMENT_MS))))

    def commit(self) -> None:
        positions = {(self._topic, partition): at for partition, at in self._handed.positions.items()}
        _try(lambda: self._consumer.commit(positions))

    def close(self) -> None:
        self._consumer.close()


class BarnabasGroupAdmin:
    def __init__(self, address: str) -> None:
        self._address = address
        self._admin = Admin(bootstrap_servers=address)

    def commit(self, group: str, topic: str, commits: Mapping[int, Committed]) -> None:
        places = {
            (topic, partition): OffsetAndMetadata(each.offset, each.metadata)
            for partition, each in commits.items()
        }
        consumer = self._consumer(group)
        try:
            consumer.assign(places)
            _try(lambda: consumer.commit(places))
        finally:
            consumer.close()

    def committed(self, group: str, topic: str, partitions: Sequence[int]) -> Mapping[int, Committed]:
        consumer = self._consumer(group)
        try:
            found = _try(lambda: consumer.committed([(topic, each) for each in partitions]))
        finally:
            consumer.close()
        return {
            place.partition: Committed(offset=each.offset, metadata=each.metadata)
            for place, each in found.items()
            if each is not None
        }

    def _consumer(self, group: str) -> Consumer:
        return Consumer({"bootstrap.servers": self._address, "group.id": group, "enable.auto.commit": False})

    def groups(self) -> Collection[str]:
        return _try(self._admin.list_groups)

    def describe(self, group: str, topic: str) -> GroupSeen:
        found = _try(lambda: self._admin.describe_group(group))
        return GroupSeen(
            state=found.state.value,
            members=tuple(frozenset(each.partition for each in one.assignment) for one in found.members),
        )

    def delete(self, group: str) -> None:
        _try(lambda: self._admin.delete_group(group))

    def alter_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        places = {
            TopicPartition(topic, partition): CommittedOffset(offset=offset)
            for partition, offset in offsets.items()
        }
        _try(lambda: self._admin.alter_group_offsets(group, places))

    def delete_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> None:
        _try(lambda: self._admin.delete_group_offsets(group, [(topic, each) for each in partitions]))

    def close(self) -> None:
        self._admin.close()
