"""kafka-python: a client in plain Python, with a thread of its own for the network."""

import re
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

import kafka
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.header import Codec
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
)
from support.clients.group_client import MemberOptions
from support.clients.kafka_python_groups import KafkaPythonGroupAdmin, KafkaPythonMember
from support.clients.kafka_python_words import refused, seen, try_call

_POLL_MS = 200
_REQUEST_TIMEOUT_MS = 10_000
_ERROR_IN_TEXT = re.compile(r"\[Error (\d+)\]")


class KafkaPython:
    name = "kafka-python"
    cannot: Mapping[Ability, str] = {
        Ability.NULL_HEADERS: "kafka-python takes bytes as the value of a header, and nothing else",
        Ability.NULL_KEY_AND_VALUE: "kafka-python asks for a key or a value in every message",
        Ability.NEW_GROUP_PROTOCOL: "kafka-python knows the classic group protocol only",
        Ability.DESCRIBE_NEW_GROUPS: "kafka-python knows the classic group protocol only",
    }

    def version(self) -> str:
        return str(kafka.__version__)

    def missing(self) -> str | None:
        return None

    def producer(self, address: str, topic: str, options: ProducerOptions) -> "KafkaPythonProducer":
        return KafkaPythonProducer(address, topic, options)

    def consumer(self, address: str, topic: str, options: ConsumerOptions) -> "KafkaPythonConsumer":
        return KafkaPythonConsumer(address, topic, options)

    def admin(self, address: str) -> "KafkaPythonAdmin":
        return KafkaPythonAdmin(address)

    def member(self, address: str, topic: str, options: MemberOptions) -> KafkaPythonMember:
        return KafkaPythonMember(address, topic, options)

    def group_admin(self, address: str) -> KafkaPythonGroupAdmin:
        return KafkaPythonGroupAdmin(address)


class KafkaPythonProducer:
    def __init__(self, address: str, topic: str, options: ProducerOptions) -> None:
        self._topic = topic
        self._options = options
        self._futures: list[Any] = []
        give_up_ms = int(options.give_up_after_s * 1000)
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=address,
            compression_type=None if options.codec is Codec.NONE else options.codec.name.lower(),
            enable_idempotence=options.idempotent,
            acks=options.acks,
            batch_size=BATCH_BYTES_MAX,
            linger_ms=LINGER_MS,
            delivery_timeout_ms=give_up_ms,
            max_block_ms=give_up_ms,
            # It must fit into the time of delivery.
            request_timeout_ms=min(_REQUEST_TIMEOUT_MS, give_up_ms // 2),
            reconnect_backoff_max_ms=RECONNECT_MS_MAX,
            # Without idempotence a retry may pass its neighbour unless there is one at a time.
            max_in_flight_requests_per_connection=5 if options.idempotent else 1,
        )

    def send(self, message: Message) -> None:
        try:
            future = self._producer.send(
                self._topic,
                message.value,
                message.key,
                headers=list(message.headers),
                partition=message.partition,
                timestamp_ms=message.timestamp_ms,
            )
        except KafkaError as error:
            # A topic that is not there is found out before anything is sent.
            self._futures.append(refused(error))
        else:
            self._futures.append(future)

    def finish(self) -> list[Delivery]:
        deadline = monotonic() + WAIT_SECONDS_MAX
        return [self._delivery(future, deadline) for future in self._futures]

    def _delivery(self, future: Any, deadline: float) -> Delivery:
        if isinstance(future, Refused):
            return Delivery(error=future)
        try:
            written = future.get(max(0.0, deadline - monotonic()))
        except KafkaError as error:
            return Delivery(error=refused(error))
        return Delivery(partition=written.partition, offset=written.offset if self._options.acks else None)

    def close(self) -> None:
        self._producer.close(1)


class KafkaPythonConsumer:
    def __init__(self, address: str, topic: str, options: ConsumerOptions) -> None:
        limits = {}
        if options.fetch_bytes_max is not None:
            limits = {
                "fetch_max_bytes": options.fetch_bytes_max,
                "max_partition_fetch_bytes": options.fetch_bytes_max,
            }
        self._places = [kafka.TopicPartition(topic, each) for each in options.partitions]
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=address,
            enable_auto_commit=False,
            auto_offset_reset="earliest" if options.out_of_range == "earliest" else "none",
            isolation_level="read_committed" if options.committed else "read_uncommitted",
            reconnect_backoff_max_ms=RECONNECT_MS_MAX,
            **limits,
        )
        self._consumer.assign(self._places)
        self._seek(options)

    def _seek(self, options: ConsumerOptions) -> None:
        match options.start:
            case "beginning":
                self._consumer.seek_to_beginning()
            case "end":
                self._consumer.seek_to_end()
            case AtTime(timestamp_ms):
                found = self._consumer.offsets_for_times(dict.fromkeys(self._places, timestamp_ms))
                for place, there in found.items():
                    self._consumer.seek(place, there.offset)
            case offset:
                for place in self._places:
                    self._consumer.seek(place, offset)

    def settle(self) -> None:
        for place in self._places:
            position = self._consumer.position(place, timeout_ms=WAIT_SECONDS_MAX * 1000)
            assert position is not None, f"the position in {place} is unknown"

    def read(self, count: int) -> list[Seen]:
        found: list[Seen] = []
        deadline = monotonic() + WAIT_SECONDS_MAX
        while len(found) < count:
            assert monotonic() < deadline, f"{len(found)} of {count} records came"
            try:
                polled = self._consumer.poll(timeout_ms=_POLL_MS, max_records=count - len(found))
            except KafkaError as error:
                raise refused(error) from None
            found += [seen(message) for messages in polled.values() for message in messages]
        return found

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonAdmin:
    def __init__(self, address: str) -> None:
        self._admin = kafka.KafkaAdminClient(
            bootstrap_servers=address, reconnect_backoff_max_ms=RECONNECT_MS_MAX
        )
        # Offsets are asked for through a consumer, as users do.
        self._consumer = kafka.KafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)

    def create_topic(self, topic: str, *, partitions: int, settings: Mapping[str, str]) -> None:
        new = {"num_partitions": partitions, "replication_factor": -1, "configs": dict(settings)}
        try_call(lambda: self._admin.create_topics({topic: new}))

    def delete_topic(self, topic: str) -> None:
        try_call(lambda: self._admin.delete_topics([topic]))

    def add_partitions(self, topic: str, total: int) -> None:
        try_call(lambda: self._admin.create_partitions({topic: total}))

    def delete_records(self, topic: str, partition: int, *, before: int) -> int:
        where = kafka.TopicPartition(topic, partition)
        return int(try_call(lambda: self._admin.delete_records({where: before}))[where]["low_watermark"])

    def topic_settings(self, topic: str) -> Mapping[str, Setting]:
        return self._settings(ConfigResourceType.TOPIC, topic)

    def broker_settings(self, broker: int) -> Mapping[str, Setting]:
        return self._settings(ConfigResourceType.BROKER, str(broker))

    def _settings(self, kind: Any, name: str) -> Mapping[str, Setting]:
        asked = [ConfigResource(kind, name)]
        found = try_call(lambda: self._admin.describe_configs(asked, config_filter="all"))
        return {
            key: Setting(value=each["value"], source=each["config_source"])
            for key, each in found[kind.name.lower()][name].items()
        }

    def change_topic(self, topic: str, *, wanted: Mapping[str, str], removed: Sequence[str]) -> None:
        self._change(ConfigResourceType.TOPIC, topic, wanted, removed)

    def change_broker(self, broker: int, *, wanted: Mapping[str, str], removed: Sequence[str]) -> None:
        self._change(ConfigResourceType.BROKER, str(broker), wanted, removed)

    def _change(self, kind: Any, name: str, wanted: Mapping[str, str], removed: Sequence[str]) -> None:
        changes: dict[str, Any] = {key: (AlterConfigOp.SET, value) for key, value in wanted.items()}
        changes |= dict.fromkeys(removed, (AlterConfigOp.DELETE, None))
        # Whether a setting exists is a question for the broker here and not for the client.
        asked = [ConfigResource(kind, name, changes)]
        answer = try_call(lambda: self._admin.alter_configs(asked, raise_on_unknown=False))
        result = answer[kind.name.lower()][name]
        if result != "OK":
            number = _ERROR_IN_TEXT.search(result)
            raise Refused(ErrorCode(int(number[1])) if number else None, result)

    def cluster(self) -> Cluster:
        found = try_call(self._admin.describe_cluster)
        brokers = {each["broker_id"]: f"{each['host']}:{each['port']}" for each in found["brokers"]}
        return Cluster(cluster_id=found["cluster_id"], controller=found["controller_id"], brokers=brokers)

    def topics(self) -> Mapping[str, int]:
        return {each["name"]: len(each["partitions"]) for each in try_call(self._admin.describe_topics)}

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        where = kafka.TopicPartition(topic, partition)
        low = try_call(lambda: self._consumer.beginning_offsets([where]))[where]
        high = try_call(lambda: self._consumer.end_offsets([where]))[where]
        return low, high

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        where = kafka.TopicPartition(topic, partition)
        found = try_call(lambda: self._consumer.offsets_for_times({where: timestamp_ms}))[where]
        return None if found is None else int(found.offset)

    def close(self) -> None:
        self._consumer.close()
        self._admin.close()
