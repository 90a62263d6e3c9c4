"""Metadata images from given records, from random ones, and from a metadata log written by Kafka 4.3.0."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from barnabas.base.ids import Uuid
from barnabas.metadata.changes import Changes
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage
from barnabas.protocol.stored import cluster_access as access
from barnabas.protocol.stored import cluster_nodes as nodes
from barnabas.protocol.stored import cluster_topics as topics
from barnabas.protocol.stored.framing import decode_metadata_record
from barnabas.records.decode import decode_batch
from barnabas.records.header import batch_headers
from support.kafka.sample import sample_files

SAMPLE_LOG = "__cluster_metadata-0/00000000000000000000.log"


@dataclass(frozen=True, kw_only=True)
class CommittedBatch:
    """A batch as a quorum delivers it."""

    base_offset: int
    last_offset: int
    epoch: int
    append_time_ms: int
    records: tuple[tuple[object, int], ...]


def replay(
    records: Iterable[object], *, offset: int = -1, epoch: int = -1, time_ms: int = -1
) -> MetadataImage:
    changes = Changes(EMPTY_IMAGE)
    for record in records:
        changes.apply(record)
    return changes.finish(offset, epoch, time_ms)


def sample_batches(name: str = SAMPLE_LOG) -> Iterator[CommittedBatch]:
    data = sample_files()[name]
    for at, header in batch_headers(data):
        values = [] if header.is_control else [one.value for one in decode_batch(data, at)]
        yield CommittedBatch(
            base_offset=header.base_offset,
            last_offset=header.last_offset,
            epoch=header.leader_epoch,
            append_time_ms=header.max_timestamp,
            records=tuple(tuple(decode_metadata_record(value or b"")) for value in values),
        )


def some_uuid(rng: random.Random) -> Uuid:
    return Uuid(rng.randbytes(16))


def random_records(rng: random.Random) -> Iterator[object]:
    """Valid records of every kind that changes the image."""
    yield nodes.FeatureLevelRecord(name="metadata.version", feature_level=30)
    for name in rng.sample(["group.version", "share.version", "streams.version"], rng.randint(0, 3)):
        yield nodes.FeatureLevelRecord(name=name, feature_level=rng.randint(0, 2))
    brokers = rng.sample(range(1, 9), rng.randint(1, 4))
    for broker in brokers:
        yield from _broker(broker, rng)
    yield nodes.RegisterControllerRecord(controller_id=rng.randint(1, 3), incarnation_id=some_uuid(rng))
    for number in range(rng.randint(0, 5)):
        yield from _topic(f"topic-{number}", brokers, rng)
    for _ in range(rng.randint(0, 4)):
        yield topics.ConfigRecord(
            resource_type=rng.choice([4, 16, 32]),
            resource_name=rng.choice(["", "1", "orders"]),
            name=rng.choice(["a", "b"]),
            value=rng.choice(["", "1", "x,y", None]),
        )
    yield topics.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=rng.choice([0, 1000, 2**62]))
    yield from _access(rng)


def _broker(broker: int, rng: random.Random) -> Iterator[object]:
    epoch = rng.randint(0, 1000)
    yield nodes.RegisterBrokerRecord(
        broker_id=broker,
        incarnation_id=some_uuid(rng),
        broker_epoch=epoch,
        end_points=[nodes.BrokerEndpoint(name="PLAINTEXT", host="h", port=9092, security_protocol=0)],
        rack=rng.choice([None, "a"]),
        log_dirs=[some_uuid(rng)],
    )
    yield nodes.BrokerRegistrationChangeRecord(
        broker_id=broker,
        broker_epoch=epoch,
        fenced=rng.choice([-1, 0, 1]),
        in_controlled_shutdown=rng.randint(0, 1),
        log_dirs=[some_uuid(rng)] * rng.randint(0, 2),
        cordoned_log_dirs=rng.choice([None, []]),
    )
    if rng.random() < 0.1:
        yield nodes.UnregisterBrokerRecord(broker_id=broker, broker_epoch=epoch)


def _topic(name: str, brokers: list[int], rng: random.Random) -> Iterator[object]:
    topic_id = some_uuid(rng)
    yield topics.TopicRecord(name=name, topic_id=topic_id)
    yield topics.ConfigRecord(resource_type=2, resource_name=name, name="retention.ms", value="1")
    count = rng.randint(1, 4)
    for index in rng.sample(range(count), count):
        yield topics.PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=brokers,
            isr=brokers[:1],
            leader=brokers[0],
            leader_epoch=rng.randint(0, 9),
            partition_epoch=rng.randint(0, 9),
            directories=rng.choice([[], [some_uuid(rng) for _ in brokers]]),
        )
    for _ in range(rng.randint(0, 3)):
        yield topics.PartitionChangeRecord(
            partition_id=rng.randrange(count),
            topic_id=topic_id,
            isr=rng.choice([None, brokers, []]),
            leader=rng.choice([-2, -1, brokers[-1]]),
            removing_replicas=rng.choice([None, [], brokers[:1]]),
            adding_replicas=rng.choice([None, [], brokers[-1:]]),
            leader_recovery_state=rng.choice([-1, 0, 1]),
            eligible_leader_replicas=rng.choice([None, [], brokers]),
            last_known_elr=rng.choice([None, [], brokers[:1]]),
        )
    match rng.randrange(6):
        case 0:
            yield topics.RemoveTopicRecord(topic_id=topic_id)
        case 1:
            yield nodes.ClearElrRecord(topic_name=rng.choice(["", name]))


def _access(rng: random.Random) -> Iterator[object]:
    acl = some_uuid(rng)
    yield access.AccessControlEntryRecord(id=acl, resource_type=2, resource_name="orders", principal="User:a")
    if rng.random() < 0.5:
        yield access.RemoveAccessControlEntryRecord(id=acl)
    for remove in rng.choices([False, True], k=2):
        user = access.EntityData(entity_type="user", entity_name=rng.choice([None, "a"]))
        client = access.EntityData(entity_type="client-id", entity_name=None)
        yield access.ClientQuotaRecord(
            entity=[user, client], key="producer_byte_rate", value=1.5, remove=remove
        )
    yield access.UserScramCredentialRecord(name="a", mechanism=1, salt=b"s", iterations=4096)
    if rng.random() < 0.5:
        yield access.RemoveUserScramCredentialRecord(name="a", mechanism=1)
    yield access.DelegationTokenRecord(owner="User:a", token_id="t")
    if rng.random() < 0.5:
        yield access.RemoveDelegationTokenRecord(token_id="t")
