"""aiokafka: the client of asyncio programs.

Each adapter has an event loop in a thread of its own, so that the client goes on while a story does something
else, as it does in a program.
"""

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.admin.records_to_delete import RecordsToDelete
from aiokafka.errors import KafkaError, for_code

from barnabas.records.header import Codec
from support.clients.aiokafka_groups import AioKafkaGroupAdmin, AioKafkaMember
from support.clients.client import (
    BATCH_BYTES_MAX,
    LINGER_MS,
    RECONNECT_MS_MAX,
    WAIT_SECONDS_MAX,
    Ability,
    AtTime,
    Cluster,
    ConsumerOptions,
    Delivery,
    Message,
    ProducerOptions,
    Refused,
    Seen,
    Setting,
    code_of,
)
from support.clients.group_client import MemberOptions
from support.clients.kafka_python_words import seen
from support.clients.loop_thread import LoopThread, refused

_POLL_MS = 200
_GROUPS_ARE_READ = "aiokafka's admin lists and describes groups, and changes nothing of them"
# Kafka's numbers for where a value is from.
_SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
}


class AioKafka:
    name = "aiokafka"
    cannot: Mapping[Ability, str] = {
        Ability.NULL_KEY_AND_VALUE: "aiokafka asks for a key or a value in every message",
        Ability.NEW_GROUP_PROTOCOL: "aiokafka knows the classic group protocol only",
        Ability.DESCRIBE_NEW_GROUPS: "aiokafka knows the classic group protocol only",
        Ability.DELETE_GROUPS: _GROUPS_ARE_READ,
        Ability.ALTER_GROUP_OFFSETS: _GROUPS_ARE_READ,
        Ability.DELETE_GROUP_OFFSETS: _GROUPS_ARE_READ,
    }

    def version(self) -> str:
        return str(aiokafka.__version__)

    def missing(self) -> str | None:
        return None

    def producer(self, address: str, topic: str, options: ProducerOptions) -> "AioKafkaProducer":
        return AioKafkaProducer(address, topic, options)

    def consumer(self, address: str, topic: str, options: ConsumerOptions) -> "AioKafkaConsumer":
        return AioKafkaConsumer(address, topic, options)

    def admin(self, address: str) -> "AioKafkaAdmin":
        return AioKafkaAdmin(address)

    def member(self, address: str, topic: str, options: MemberOptions) -> AioKafkaMember:
        return AioKafkaMember(address, topic, options)

    def group_admin(self, address: str) -> AioKafkaGroupAdmin:
        return AioKafkaGroupAdmin(address)


class AioKafkaProducer:
    def __init__(self, address: str, topic: str, options: ProducerOptions) -> None:
        self._topic = topic
        self._options = options
        self._futures: list[Any] = []
        self._loop = LoopThread()
        self._producer: aiokafka.AIOKafkaProducer = self._loop.run(self._start(address))

    async def _start(self, address: str) -> aiokafka.AIOKafkaProducer:
        options = self._options
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=address,
            compression_type=None if options.codec is Codec.NONE else options.codec.name.lower(),
            enable_idempotence=options.idempotent,
            acks=options.acks,
            max_batch_size=BATCH_BYTES_MAX,
            linger_ms=LINGER_MS,
            request_timeout_ms=int(options.give_up_after_s * 1000),
            retry_backoff_ms=RECONNECT_MS_MAX,
        )
        await producer.start()
        return producer

    def send(self, message: Message) -> None:
        try:
            self._futures.append(self._loop.run(self._send(message)))
        except Refused as error:
            # A topic that is not there is found out before anything is sent.
            self._futures.append(error)

    async def _send(self, message: Message) -> Any:
        return await self._producer.send(
            self._topic,
            message.value,
            message.key,
            partition=message.partition,
            timestamp_ms=message.timestamp_ms,
            headers=list(message.headers),
        )

    def finish(self) -> list[Delivery]:
        return self._loop.run(self._finish())

    async def _finish(self) -> list[Delivery]:
        return [await self._delivery(future) for future in self._futures]

    async def _delivery(self, future: Any) -> Delivery:
        if isinstance(future, Refused):
            return Delivery(error=future)
        try:
            written = await future
        except KafkaError as error:
            return Delivery(error=refused(error))
        # With acks=0 it gives no place at all.
        if written is None:
            return Delivery()
        return Delivery(partition=written.partition, offset=written.offset if self._options.acks else None)

    def close(self) -> None:
        try:
            self._loop.run(self._producer.stop())
        finally:
            self._loop.close()


class AioKafkaConsumer:
    def __init__(self, address: str, topic: str, options: ConsumerOptions) -> None:
        self._places = [aiokafka.TopicPartition(topic, each) for each in options.partitions]
        self._loop = LoopThread()
        self._consumer: aiokafka.AIOKafkaConsumer = self._loop.run(self._start(address, options))

    async def _start(self, address: str, options: ConsumerOptions) -> aiokafka.AIOKafkaConsumer:
        limits = {}
        if options.fetch_bytes_max is not None:
            limits = {
                "fetch_max_bytes": options.fetch_bytes_max,
                "max_partition_fetch_bytes": options.fetch_bytes_max,
            }
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=address,
            enable_auto_commit=False,
            auto_offset_reset="earliest" if options.out_of_range == "earliest" else "none",
            isolation_level="read_committed" if options.committed else "read_uncommitted",
            retry_backoff_ms=RECONNECT_MS_MAX,
            **limits,
        )
        await consumer.start()
        consumer.assign(self._places)
        await self._seek(consumer, options)
        return consumer

    async def _seek(self, consumer: aiokafka.AIOKafkaConsumer, options: ConsumerOptions) -> None:
        match options.start:
            case "beginning":
                await consumer.seek_to_beginning()
            case "end":
                await consumer.seek_to_end()
            case AtTime(timestamp_ms):
                found = await consumer.offsets_for_times(dict.fromkeys(self._places, timestamp_ms))
                for place, there in found.items():
                    consumer.seek(place, there.offset)
            case offset:
                for place in self._places:
                    consumer.seek(place, offset)

    def settle(self) -> None:
        for place in self._places:
            self._loop.run(self._consumer.position(place))

    def read(self, count: int) -> list[Seen]:
        found: list[Seen] = []
        deadline = monotonic() + WAIT_SECONDS_MAX
        while len(found) < count:
            assert monotonic() < deadline, f"{len(found)} of {count} records came"
            polled = self._loop.run(self._poll(count - len(found)))
            found += [seen(message) for messages in polled.values() for message in messages]
        return found

    async def _poll(self, count: int) -> Mapping[Any, list[Any]]:
        found: Mapping[Any, list[Any]] = await self._consumer.getmany(timeout_ms=_POLL_MS, max_records=count)
        return found

    def close(self) -> None:
        try:
            self._loop.run(self._consumer.stop())
        finally:
            self._loop.close()


class AioKafkaAdmin:
    def __init__(self, address: str) -> None:
        self._loop = LoopThread()
        self._admin, self._consumer = self._loop.run(self._start(address))

    async def _start(self, address: str) -> tuple[AIOKafkaAdminClient, aiokafka.AIOKafkaConsumer]:
        admin = AIOKafkaAdminClient(bootstrap_servers=address)
        await admin.start()
        # Offsets are asked for through a consumer, as users do.
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
        await consumer.start()
        return admin, consumer

    def create_topic(self, topic: str, *, partitions: int, settings: Mapping[str, str]) -> None:
        new = NewTopic(topic, partitions, 1, topic_configs=dict(settings))
        answer = self._loop.run(self._admin.create_topics([new]))
        for _, code, text in answer.topic_errors:
            _check(code, text)

    def delete_topic(self, topic: str) -> None:
        answer = self._loop.run(self._admin.delete_topics([topic]))
        for _, code in answer.topic_error_codes:
            _check(code, None)

    def add_partitions(self, topic: str, total: int) -> None:
        self._loop.run(self._admin.create_partitions({topic: NewPartitions(total)}))

    def delete_records(self, topic: str, partition: int, *, before: int) -> int:
        where = aiokafka.TopicPartition(topic, partition)
        return int(self._loop.run(self._admin.delete_records({where: RecordsToDelete(before)}))[where])

    def topic_settings(self, topic: str) -> Mapping[str, Setting]:
        return self._settings(ConfigResourceType.TOPIC, topic)

    def broker_settings(self, broker: int) -> Mapping[str, Setting]:
        return self._settings(ConfigResourceType.BROKER, str(broker))

    def _settings(self, kind: ConfigResourceType, name: str) -> Mapping[str, Setting]:
        [answer] = self._loop.run(self._admin.describe_configs([ConfigResource(kind, name)]))
        [(code, text, _, _, entries)] = answer.resources
        _check(code, text)
        return {key: Setting(value=value, source=_SOURCES[source]) for key, value, _, source, *_ in entries}

    def change_topic(self, topic: str, *, wanted: Mapping[str, str], removed: Sequence[str]) -> None:
        self._replace(ConfigResourceType.TOPIC, topic, wanted)

    def change_broker(self, broker: int, *, wanted: Mapping[str, str], removed: Sequence[str]) -> None:
        self._replace(ConfigResourceType.BROKER, str(broker), wanted)

    def _replace(self, kind: ConfigResourceType, name: str, wanted: Mapping[str, str]) -> None:
        """It knows AlterConfigs alone, which removes what is not named."""
        answers = self._loop.run(self._admin.alter_configs([ConfigResource(kind, name, dict(wanted))]))
        for code, text, _, _ in (row for answer in answers for row in answer.resources):
            _check(code, text)

    def cluster(self) -> Cluster:
        found = self._loop.run(self._admin.describe_cluster())
        brokers = {each["node_id"]: f"{each['host']}:{each['port']}" for each in found["brokers"]}
        return Cluster(cluster_id=found["cluster_id"], controller=found["controller_id"], brokers=brokers)

    def topics(self) -> Mapping[str, int]:
        found = self._loop.run(self._admin.describe_topics())
        return {each["topic"]: len(each["partitions"]) for each in found}

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        where = aiokafka.TopicPartition(topic, partition)
        low = self._loop.run(self._consumer.beginning_offsets([where]))[where]
        high = self._loop.run(self._consumer.end_offsets([where]))[where]
        return low, high

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        where = aiokafka.TopicPartition(topic, partition)
        found = self._loop.run(self._consumer.offsets_for_times({where: timestamp_ms}))[where]
        return None if found is None else int(found.offset)

    def close(self) -> None:
        try:
            self._loop.run(self._consumer.stop())
            self._loop.run(self._admin.close())
        finally:
            self._loop.close()


def _check(code: int, text: str | None) -> None:
    if code:
        raise Refused(code_of(code), text or for_code(code).__name__)
