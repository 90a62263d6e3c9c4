"""confluent-kafka: librdkafka, which most clients outside of Java are made of."""

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

import confluent_kafka as ck

from support.clients.client import (
    LINGER_MS,
    WAIT_SECONDS_MAX,
    Ability,
    AtTime,
    Cluster,
    ConsumerOptions,
    Delivery,
    Message,
    ProducerOptions,
    Seen,
    Setting,
)
from support.clients.confluent_groups import ConfluentGroupAdmin, ConfluentMember
from support.clients.confluent_words import ck_admin, common, one, refused, seen, try_call
from support.clients.group_client import MemberOptions

_POLL_SECONDS = 0.2
# librdkafka demands it even of a consumer that is assigned its partitions; nothing is ever committed to it.
_UNUSED_GROUP = "required-by-librdkafka"
# The least that message.max.bytes may be, to which librdkafka raises fetch.max.bytes.
_FETCH_BYTES_MIN = 1000


class Confluent:
    name = "confluent-kafka"
    cannot: Mapping[Ability, str] = {
        Ability.DELETE_GROUP_OFFSETS: "confluent-kafka's admin deletes groups, but not single offsets of one",
    }

    def version(self) -> str:
        return f"{ck.__version__} (librdkafka {ck.libversion()[0]})"

    def missing(self) -> str | None:
        return None

    def producer(self, address: str, topic: str, options: ProducerOptions) -> "ConfluentProducer":
        return ConfluentProducer(address, topic, options)

    def consumer(self, address: str, topic: str, options: ConsumerOptions) -> "ConfluentConsumer":
        return ConfluentConsumer(address, topic, options)

    def admin(self, address: str) -> "ConfluentAdmin":
        return ConfluentAdmin(address)

    def member(self, address: str, topic: str, options: MemberOptions) -> ConfluentMember:
        return ConfluentMember(address, topic, options)

    def group_admin(self, address: str) -> ConfluentGroupAdmin:
        return ConfluentGroupAdmin(address)


class ConfluentProducer:
    def __init__(self, address: str, topic: str, options: ProducerOptions) -> None:
        self._topic = topic
        self._acks = options.acks
        self._deliveries: dict[int, Delivery] = {}
        self._sent = 0
        self._producer = ck.Producer(
            {
                **common(address),
                "compression.type": options.codec.name.lower(),
                "acks": options.acks,
                "enable.idempotence": options.idempotent,
                "linger.ms": LINGER_MS,
                "message.timeout.ms": int(options.give_up_after_s * 1000),
                # Without idempotence a retry may pass its neighbour unless there is one at a time.
                "max.in.flight": 5 if options.idempotent else 1,
            }
        )

    def send(self, message: Message) -> None:
        place: dict[str, Any] = {} if message.partition is None else {"partition": message.partition}
        if message.timestamp_ms is not None:
            place["timestamp"] = message.timestamp_ms
        at = self._sent
        self._sent += 1
        self._producer.produce(
            self._topic,
            message.value,
            message.key,
            headers=list(message.headers),
            on_delivery=lambda error, found: self._delivered(at, error, found),
            **place,
        )
        self._producer.poll(0)

    def _delivered(self, at: int, error: Any, message: Any) -> None:
        if error is not None:
            self._deliveries[at] = Delivery(error=refused(error))
        else:
            offset = message.offset() if self._acks else None
            self._deliveries[at] = Delivery(partition=message.partition(), offset=offset)

    def finish(self) -> list[Delivery]:
        left = self._producer.flush(WAIT_SECONDS_MAX)
        assert left == 0, f"{left} of {self._sent} messages are neither delivered nor refused"
        return [self._deliveries[at] for at in range(self._sent)]

    def close(self) -> None:
        self._producer.purge()
        self._producer.close()


class ConfluentConsumer:
    def __init__(self, address: str, topic: str, options: ConsumerOptions) -> None:
        settings = {
            **common(address),
            "group.id": _UNUSED_GROUP,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
            "auto.offset.reset": "earliest" if options.out_of_range == "earliest" else "error",
            "isolation.level": "read_committed" if options.committed else "read_uncommitted",
        }
        if options.fetch_bytes_max is not None:
            limit = max(_FETCH_BYTES_MIN, options.fetch_bytes_max)
            settings |= {
                "fetch.max.bytes": limit,
                "max.partition.fetch.bytes": limit,
                "message.max.bytes": limit,
            }
        self._ends: set[int | None] = set()
        self._early: list[Seen] = []
        self._wanted = set(options.partitions)
        self._consumer = ck.Consumer(settings)
        self._consumer.assign(self._places(topic, options))

    def _places(self, topic: str, options: ConsumerOptions) -> list[Any]:
        start = options.start
        if isinstance(start, AtTime):
            asked = [ck.TopicPartition(topic, each, start.timestamp_ms) for each in options.partitions]
            return list(self._consumer.offsets_for_times(asked, timeout=WAIT_SECONDS_MAX))
        named = {"beginning": ck.OFFSET_BEGINNING, "end": ck.OFFSET_END}
        offset = start if isinstance(start, int) else named[start]
        return [ck.TopicPartition(topic, each, offset) for each in options.partitions]

    def settle(self) -> None:
        deadline = monotonic() + WAIT_SECONDS_MAX
        while self._ends != self._wanted:
            assert monotonic() < deadline, f"only {self._ends} of {self._wanted} are at the end"
            self._early += self._poll(1)

    def read(self, count: int) -> list[Seen]:
        found, self._early = self._early, []
        deadline = monotonic() + WAIT_SECONDS_MAX
        while len(found) < count:
            assert monotonic() < deadline, f"{len(found)} of {count} records came"
            found += self._poll(count - len(found))
        self._early = found[count:]
        return found[:count]

    def _poll(self, count: int) -> list[Seen]:
        found = []
        for message in self._consumer.consume(count, _POLL_SECONDS):
            error = message.error()
            if error is None:
                found.append(seen(message))
            elif error.code() == ck.KafkaError._PARTITION_EOF:
                self._ends.add(message.partition())
            else:
                raise refused(error)
        return found

    def close(self) -> None:
        self._consumer.close()


class ConfluentAdmin:
    def __init__(self, address: str) -> None:
        self._admin = ck_admin.AdminClient(common(address))
        # Offsets are asked for through a consumer, as users do.
        self._consumer = ck.Consumer(
            {**common(address), "group.id": _UNUSED_GROUP, "enable.auto.commit": False}
        )

    def create_topic(self, topic: str, *, partitions: int, settings: Mapping[str, str]) -> None:
        new = ck_admin.NewTopic(topic, num_partitions=partitions, config=dict(settings))
        one(self._admin.create_topics([new]))

    def delete_topic(self, topic: str) -> None:
        one(self._admin.delete_topics([topic]))

    def add_partitions(self, topic: str, total: int) -> None:
        one(self._admin.create_partitions([ck_admin.NewPartitions(topic, total)]))

    def delete_records(self, topic: str, partition: int, *, before: int) -> int:
        return int(
            one(self._admin.delete_records([ck.TopicPartition(topic, partition, before)])).low_watermark
        )

    def topic_settings(self, topic: str) -> Mapping[str, Setting]:
        return self._settings(ck_admin.ConfigResource("topic", topic))

    def broker_settings(self, broker: int) -> Mapping[str, Setting]:
        return self._settings(ck_admin.ConfigResource("broker", str(broker)))

    def _settings(self, resource: Any) -> Mapping[str, Setting]:
        found = one(self._admin.describe_configs([resource]))
        return {
            name: Setting(value=entry.value, source=ck_admin.ConfigSource(entry.source).name)
            for name, entry in found.items()
        }

    def change_topic(self, topic: str, *, wanted: Mapping[str, str], removed: Sequence[str]) -> None:
        self._change("topic", topic, wanted, removed)

    def change_broker(self, broker: int, *, wanted: Mapping[str, str], removed: Sequence[str]) -> None:
        self._change("broker", str(broker), wanted, removed)

    def _change(self, kind: str, name: str, wanted: Mapping[str, str], removed: Sequence[str]) -> None:
        operation = ck_admin.AlterConfigOpType
        changes = [
            ck_admin.ConfigEntry(key, value, incremental_operation=operation.SET)
            for key, value in wanted.items()
        ]
        changes += [
            ck_admin.ConfigEntry(key, None, incremental_operation=operation.DELETE) for key in removed
        ]
        resource = ck_admin.ConfigResource(kind, name, incremental_configs=changes)
        one(self._admin.incremental_alter_configs([resource]))

    def cluster(self) -> Cluster:
        found = self._admin.describe_cluster(request_timeout=WAIT_SECONDS_MAX).result(WAIT_SECONDS_MAX)
        brokers = {node.id: f"{node.host}:{node.port}" for node in found.nodes}
        return Cluster(cluster_id=found.cluster_id, controller=found.controller.id, brokers=brokers)

    def topics(self) -> Mapping[str, int]:
        found = self._admin.list_topics(timeout=WAIT_SECONDS_MAX).topics
        return {name: len(topic.partitions) for name, topic in found.items()}

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        where = ck.TopicPartition(topic, partition)
        low, high = try_call(lambda: self._consumer.get_watermark_offsets(where, timeout=WAIT_SECONDS_MAX))
        return low, high

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        asked = [ck.TopicPartition(topic, partition, timestamp_ms)]
        [found] = try_call(lambda: self._consumer.offsets_for_times(asked, timeout=WAIT_SECONDS_MAX))
        return None if found.offset < 0 else int(found.offset)

    def close(self) -> None:
        self._consumer.close()
