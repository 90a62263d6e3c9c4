"""confluent-kafka in groups."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import confluent_kafka as ck

from support.clients.client import WAIT_SECONDS_MAX, Seen
from support.clients.confluent_words import ck_admin, common, one, refused, seen, try_call
from support.clients.group_client import (
    HEARTBEAT_MS,
    MOMENT_MS,
    SESSION_MS,
    Committed,
    GroupSeen,
    Handed,
    MemberOptions,
)

_RECORDS_MAX = 100


class ConfluentMember:
    def __init__(self, address: str, topic: str, options: MemberOptions) -> None:
        settings = {
            **common(address),
            "group.id": options.group,
            "group.protocol": options.protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        if options.protocol == "classic":
            settings |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}
        if options.instance is not None:
            settings["group.instance.id"] = options.instance
        self._topic = topic
        self._handed = Handed(self._poll)
        self._consumer = ck.Consumer(settings)
        self._consumer.subscribe([topic])

    def partitions(self) -> frozenset[int]:
        self._handed.work()
        return frozenset(each.partition for each in self._consumer.assignment())

    def read(self, count: int) -> list[Seen]:
        return self._handed.read(count)

    def _poll(self) -> list[Seen]:
        messages = self._consumer.consume(_RECORDS_MAX, MOMENT_MS / 1000)
        for message in messages:
            if message.error() is not None:
                raise refused(message.error())
        return [seen(message) for message in messages]

    def commit(self) -> None:
        places = [ck.TopicPartition(self._topic, *each) for each in self._handed.positions.items()]
        done = try_call(lambda: self._consumer.commit(offsets=places, asynchronous=False))
        _check(done or ())

    def close(self) -> None:
        self._consumer.close()


def _check(places: Sequence[Any]) -> None:
    for place in places:
        if place.error is not None:
            raise refused(place.error)


class ConfluentGroupAdmin:
    def __init__(self, address: str) -> None:
        self._address = address
        self._admin = ck_admin.AdminClient(common(address))

    def commit(self, group: str, topic: str, commits: Mapping[int, Committed]) -> None:
        consumer = ck.Consumer({**common(self._address), "group.id": group, "enable.auto.commit": False})
        places = [
            ck.TopicPartition(topic, partition, each.offset, each.metadata)
            for partition, each in commits.items()
        ]
        try:
            _check(try_call(lambda: consumer.commit(offsets=places, asynchronous=False)) or ())
        finally:
            consumer.close()

    def committed(self, group: str, topic: str, partitions: Sequence[int]) -> Mapping[int, Committed]:
        asked = ck.ConsumerGroupTopicPartitions(
            group, [ck.TopicPartition(topic, each) for each in partitions]
        )
        found = one(self._admin.list_consumer_group_offsets([asked])).topic_partitions
        _check(found)
        return {
            each.partition: Committed(offset=each.offset, metadata=each.metadata or "")
            for each in found
            if each.offset >= 0
        }

    def groups(self) -> Collection[str]:
        found = try_call(lambda: self._admin.list_consumer_groups().result(WAIT_SECONDS_MAX))
        assert found.errors == []
        return [each.group_id for each in found.valid]

    def describe(self, group: str, topic: str) -> GroupSeen:
        found = one(self._admin.describe_consumer_groups([group]))
        return GroupSeen(
            # Kafka's words of two parts are told here with an underscore.
            state=found.state.name.title().replace("_", ""),
            members=tuple(
                frozenset(each.partition for each in member.assignment.topic_partitions)
                for member in found.members
            ),
        )

    def delete(self, group: str) -> None:
        one(self._admin.delete_consumer_groups([group]))

    def alter_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        places = [ck.TopicPartition(topic, *each) for each in offsets.items()]
        asked = ck.ConsumerGroupTopicPartitions(group, places)
        _check(one(self._admin.alter_consumer_group_offsets([asked])).topic_partitions)

    def delete_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        return
