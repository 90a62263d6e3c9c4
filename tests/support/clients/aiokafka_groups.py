"""aiokafka in groups. Its admin gives the bytes of what members have been assigned."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.structs import OffsetAndMetadata

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
from support.clients.kafka_python_words import seen
from support.clients.loop_thread import LoopThread


class AioKafkaMember:
    def __init__(self, address: str, topic: str, options: MemberOptions) -> None:
        self._topic = topic
        self._handed = Handed(self._poll)
        self._loop = LoopThread()
        self._consumer: aiokafka.AIOKafkaConsumer = self._loop.run(self._start(address, options))

    async def _start(self, address: str, options: MemberOptions) -> aiokafka.AIOKafkaConsumer:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=address,
            group_id=options.group,
            group_instance_id=options.instance,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            retry_backoff_ms=RECONNECT_MS_MAX,
        )
        await consumer.start()
        # Not before: it would start when the others of the group have let it in, who are not asked meanwhile.
        consumer.subscribe([self._topic])
        return consumer

    def partitions(self) -> frozenset[int]:
        self._handed.work()
        return frozenset(each.partition for each in self._consumer.assignment())

    def read(self, count: int) -> list[Seen]:
        return self._handed.read(count)

    def _poll(self) -> list[Seen]:
        polled = self._loop.run(self._getmany())
        return [seen(message) for messages in polled.values() for message in messages]

    async def _getmany(self) -> Mapping[Any, list[Any]]:
        found: Mapping[Any, list[Any]] = await self._consumer.getmany(timeout_ms=MOMENT_MS)
        return found

    def commit(self) -> None:
        positions = self._handed.positions.items()
        places = {aiokafka.TopicPartition(self._topic, partition): at for partition, at in positions}
        self._loop.run(self._consumer.commit(places))

    def close(self) -> None:
        try:
            self._loop.run(self._consumer.stop())
        finally:
            self._loop.close()


class AioKafkaGroupAdmin:
    def __init__(self, address: str) -> None:
        self._address = address
        self._loop = LoopThread()
        self._admin: AIOKafkaAdminClient = self._loop.run(self._start())

    async def _start(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._address)
        await admin.start()
        return admin

    def commit(self, group: str, topic: str, commits: Mapping[int, Committed]) -> None:
        places = {
            aiokafka.TopicPartition(topic, partition): OffsetAndMetadata(each.offset, each.metadata)
            for partition, each in commits.items()
        }
        self._loop.run(self._commit(group, places))

    async def _commit(self, group: str, places: Mapping[Any, Any]) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self._address, group_id=group, enable_auto_commit=False
        )
        await consumer.start()
        try:
            consumer.assign(list(places))
            await consumer.commit(places)
        finally:
            await consumer.stop()

    def committed(self, group: str, topic: str, partitions: Sequence[int]) -> Mapping[int, Committed]:
        places = [aiokafka.TopicPartition(topic, each) for each in partitions]
        found = self._loop.run(self._admin.list_consumer_group_offsets(group, partitions=places))
        return {
            place.partition: Committed(offset=each.offset, metadata=each.metadata)
            for place, each in found.items()
            if each.offset >= 0
        }

    def groups(self) -> Collection[str]:
        return [group for group, _ in self._loop.run(self._admin.list_consumer_groups())]

    def describe(self, group: str, topic: str) -> GroupSeen:
        [answer] = self._loop.run(self._admin.describe_consumer_groups([group]))
        [(code, _, state, _, _, members, *_)] = answer.groups
        assert code == 0, answer
        # The assignment is the last thing that is told of a member in every version that it speaks.
        return GroupSeen(state=state, members=tuple(_partitions(each[-1]) for each in members))

    def delete(self, group: str) -> None:
        raise NotImplementedError

    def alter_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        raise NotImplementedError

    def delete_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        try:
            self._loop.run(self._admin.close())
        finally:
            self._loop.close()


def _partitions(assignment: bytes) -> frozenset[int]:
    found = ConsumerProtocolMemberAssignment.decode(assignment)
    return frozenset(each for _, partitions in found.assignment for each in partitions)
