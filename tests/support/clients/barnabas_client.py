"""Our own client: the blocking one, behind which the async one runs as it does in a program."""

from collections.abc import Mapping, Sequence
from time import monotonic

from barnabas import __version__
from barnabas.base.ids import TopicPartition
from barnabas.client import ClientError
from barnabas.client.admin import OffsetSpec, Resource, broker_resource, topic_resource
from barnabas.client.blocking import Admin, Consumer, Producer
from barnabas.client.blocking import Delivery as OurDelivery
from support.clients.barnabas_groups import BarnabasGroupAdmin, BarnabasMember
from support.clients.barnabas_words import refused, seen
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
    Seen,
    Setting,
)
from support.clients.group_client import MemberOptions

_POLL_MS = 200


class Barnabas:
    name = "barnabas"
    cannot: Mapping[Ability, str] = {}

    def version(self) -> str:
        return __version__

    def missing(self) -> str | None:
        return None

    def producer(self, address: str, topic: str, options: ProducerOptions) -> "BarnabasProducer":
        return BarnabasProducer(address, topic, options)

    def consumer(self, address: str, topic: str, options: ConsumerOptions) -> "BarnabasConsumer":
        return BarnabasConsumer(address, topic, options)

    def admin(self, address: str) -> "BarnabasAdmin":
        return BarnabasAdmin(address)

    def member(self, address: str, topic: str, options: MemberOptions) -> BarnabasMember:
        return BarnabasMember(address, topic, options)

    def group_admin(self, address: str) -> BarnabasGroupAdmin:
        return BarnabasGroupAdmin(address)


class BarnabasProducer:
    def __init__(self, address: str, topic: str, options: ProducerOptions) -> None:
        self._topic = topic
        self._acks = options.acks
        self._sent: list[OurDelivery] = []
        give_up_ms = int(options.give_up_after_s * 1000)
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "compression.type": options.codec.name.lower(),
                "enable.idempotence": options.idempotent,
                "acks": options.acks,
                "batch.size": BATCH_BYTES_MAX,
                "linger.ms": LINGER_MS,
                "max.block.ms": give_up_ms,
                "delivery.timeout.ms": give_up_ms,
                "request.timeout.ms": give_up_ms - LINGER_MS,
                "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
            }
        )

    def send(self, message: Message) -> None:
        self._sent.append(
            self._producer.send(
                self._topic,
                message.value,
                message.key,
                partition=message.partition,
                timestamp_ms=message.timestamp_ms,
                headers=message.headers,
            )
        )

    def finish(self) -> list[Delivery]:
        self._producer.flush(WAIT_SECONDS_MAX)
        return [self._delivery(each) for each in self._sent]

    def _delivery(self, sent: OurDelivery) -> Delivery:
        try:
            written = sent.result(WAIT_SECONDS_MAX)
        except ClientError as error:
            return Delivery(error=refused(error))
        return Delivery(partition=written.partition, offset=written.offset if self._acks else None)

    def close(self) -> None:
        self._producer.close(WAIT_SECONDS_MAX * 1000)


class BarnabasConsumer:
    def __init__(self, address: str, topic: str, options: ConsumerOptions) -> None:
        self._places = [TopicPartition(topic, each) for each in options.partitions]
        most = options.fetch_bytes_max
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "auto.offset.reset": "earliest" if options.out_of_range == "earliest" else "none",
                "isolation.level": "read_committed" if options.committed else "read_uncommitted",
                "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
                **({} if most is None else {"fetch.max.bytes": most, "max.partition.fetch.bytes": most}),
            }
        )
        self._consumer.assign(self._places)
        match options.start:
            case "beginning":
                self._consumer.seek_to_beginning()
            case "end":
                self._consumer.seek_to_end()
            case AtTime(timestamp_ms):
                self._consumer.seek_to_time(timestamp_ms)
            case offset:
                for place in self._places:
                    self._consumer.seek(place, offset)

    def settle(self) -> None:
        for place in self._places:
            self._consumer.position(place)

    def read(self, count: int) -> list[Seen]:
        found: list[Seen] = []
        deadline = monotonic() + WAIT_SECONDS_MAX
        while len(found) < count:
            assert monotonic() < deadline, f"{len(found)} of {count} records came"
            try:
                batch = self._consumer.batch(count - len(found), timeout_ms=_POLL_MS)
            except ClientError as error:
                raise refused(error) from None
            found += map(seen, batch)
        return found

    def close(self) -> None:
        self._consumer.close()


class BarnabasAdmin:
    def __init__(self, address: str) -> None:
        self._admin = Admin(bootstrap_servers=address)

    def create_topic(self, topic: str, *, partitions: int, settings: Mapping[str, str]) -> None:
        try:
            self._admin.create_topic(topic, partitions=partitions, settings=settings)
        except ClientError as error:
            raise refused(error) from None

    def delete_topic(self, topic: str) -> None:
        try:
            self._admin.delete_topic(topic)
        except ClientError as error:
            raise refused(error) from None

    def add_partitions(self, topic: str, total: int) -> None:
        try:
            self._admin.create_partitions(topic, total)
        except ClientError as error:
            raise refused(error) from None

    def delete_records(self, topic: str, partition: int, *, before: int) -> int:
        where = TopicPartition(topic, partition)
        try:
            return self._admin.delete_records({where: before})[where]
        except ClientError as error:
            raise refused(error) from None

    def topic_settings(self, topic: str) -> Mapping[str, Setting]:
        return self._settings(topic_resource(topic))

    def broker_settings(self, broker: int) -> Mapping[str, Setting]:
        return self._settings(broker_resource(broker))

    def _settings(self, resource: Resource) -> Mapping[str, Setting]:
        try:
            found = self._admin.describe_config(resource)
        except ClientError as error:
            raise refused(error) from None
        return {name: Setting(value=entry.value, source=entry.source.name) for name, entry in found.items()}

    def change_topic(self, topic: str, *, wanted: Mapping[str, str], removed: Sequence[str]) -> None:
        self._change(topic_resource(topic), wanted, removed)

    def change_broker(self, broker: int, *, wanted: Mapping[str, str], removed: Sequence[str]) -> None:
        self._change(broker_resource(broker), wanted, removed)

    def _change(self, resource: Resource, wanted: Mapping[str, str], removed: Sequence[str]) -> None:
        try:
            self._admin.alter_config(resource, wanted, delete=removed)
        except ClientError as error:
            raise refused(error) from None

    def cluster(self) -> Cluster:
        found = self._admin.describe_cluster()
        brokers = {node.id: f"{node.host}:{node.port}" for node in found.nodes.values()}
        return Cluster(cluster_id=found.cluster_id, controller=found.controller_id, brokers=brokers)

    def topics(self) -> Mapping[str, int]:
        return {name: topic.partitions for name, topic in self._admin.list_topics().items()}

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        where = TopicPartition(topic, partition)
        low = self._admin.list_offsets({where: OffsetSpec.EARLIEST})[where].offset
        high = self._admin.list_offsets({where: OffsetSpec.LATEST})[where].offset
        assert low is not None
        assert high is not None
        return low, high

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        where = TopicPartition(topic, partition)
        return self._admin.list_offsets({where: timestamp_ms})[where].offset

    def close(self) -> None:
        self._admin.close()
