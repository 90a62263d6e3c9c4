"""kafka-python in groups."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import kafka
from kafka.errors import KafkaError

from support.clients.client import RECONNECT_MS_MAX, Refused, Seen, code_of
from support.clients.group_client import (
    HEARTBEAT_MS,
    MOMENT_MS,
    SESSION_MS,
    Committed,
    GroupSeen,
    Handed,
    MemberOptions,
)
from support.clients.kafka_python_words import seen, try_call

_NO_EPOCH = -1


class KafkaPythonMember:
    def __init__(self, address: str, topic: str, options: MemberOptions) -> None:
        self._topic = topic
        self._handed = Handed(self._poll)
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=address,
            group_id=options.group,
            group_instance_id=options.instance,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            reconnect_backoff_max_ms=RECONNECT_MS_MAX,
        )
        self._consumer.subscribe([topic])
        # A leader that joins before it knows the topic assigns nothing of it, and with polls as short as here
        # kafka-python may leave it at that.
        assert self._consumer.partitions_for_topic(topic)

    def partitions(self) -> frozenset[int]:
        self._handed.work()
        return frozenset(each.partition for each in self._consumer.assignment())

    def read(self, count: int) -> list[Seen]:
        return self._handed.read(count)

    def _poll(self) -> list[Seen]:
        polled = try_call(lambda: self._consumer.poll(timeout_ms=MOMENT_MS))
        return [seen(message) for messages in polled.values() for message in messages]

    def commit(self) -> None:
        try_call(
            lambda: self._consumer.commit(
                {
                    kafka.TopicPartition(self._topic, partition): kafka.OffsetAndMetadata(at, "", _NO_EPOCH)
                    for partition, at in self._handed.positions.items()
                }
            )
        )

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonGroupAdmin:
    def __init__(self, address: str) -> None:
        self._address = address
        self._admin = kafka.KafkaAdminClient(
            bootstrap_servers=address, reconnect_backoff_max_ms=RECONNECT_MS_MAX
        )

    def commit(self, group: str, topic: str, commits: Mapping[int, Committed]) -> None:
        places = {
            kafka.TopicPartition(topic, partition): kafka.OffsetAndMetadata(
                each.offset, each.metadata, _NO_EPOCH
            )
            for partition, each in commits.items()
        }
        consumer = self._consumer(group)
        try:
            consumer.assign(list(places))
            try_call(lambda: consumer.commit(places))
        finally:
            consumer.close()

    def committed(self, group: str, topic: str, partitions: Sequence[int]) -> Mapping[int, Committed]:
        consumer = self._consumer(group)
        try:
            found = {each: self._committed(consumer, topic, each) for each in partitions}
        finally:
            consumer.close()
        return {
            partition: Committed(offset=each.offset, metadata=each.metadata)
            for partition, each in found.items()
            if each is not None
        }

    def _committed(self, consumer: Any, topic: str, partition: int) -> Any:
        return try_call(lambda: consumer.committed(kafka.TopicPartition(topic, partition), metadata=True))

    def _consumer(self, group: str) -> Any:
        return kafka.KafkaConsumer(bootstrap_servers=self._address, group_id=group, enable_auto_commit=False)

    def groups(self) -> Collection[str]:
        return [each["group_id"] for each in try_call(self._admin.list_groups)]

    def describe(self, group: str, topic: str) -> GroupSeen:
        found = try_call(lambda: self._admin.describe_groups([group]))[group]
        assert found["error"] is None, found
        return GroupSeen(
            state=found["group_state"], members=tuple(_partitions(each) for each in found["members"])
        )

    def delete(self, group: str) -> None:
        done = try_call(lambda: self._admin.delete_groups([group]))[group]
        if done != "OK":
            # The name of its class for the error is all that it gives.
            [error] = [each for each in _all_errors(KafkaError) if each.__name__ == done]
            raise Refused(code_of(error.errno), done)

    def alter_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        places = {
            kafka.TopicPartition(topic, partition): kafka.OffsetAndMetadata(offset, "", _NO_EPOCH)
            for partition, offset in offsets.items()
        }
        _check(try_call(lambda: self._admin.alter_group_offsets(group, places)))

    def delete_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> None:
        places = [kafka.TopicPartition(topic, each) for each in partitions]
        _check(try_call(lambda: self._admin.delete_group_offsets(group, places)))

    def close(self) -> None:
        self._admin.close()


def _partitions(member: Mapping[str, Any]) -> frozenset[int]:
    assignment = member["member_assignment"]
    if not assignment:
        return frozenset()
    return frozenset(each for topic in assignment["assigned_partitions"] for each in topic["partitions"])


def _check(results: Mapping[Any, Any]) -> None:
    for error in results.values():
        if error.errno:
            raise Refused(code_of(error.errno), error.__name__)


def _all_errors(error: type[Any]) -> set[type[Any]]:
    return {error}.union(*map(_all_errors, error.__subclasses__()))
