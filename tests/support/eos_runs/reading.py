"""Looking at a run from outside: records that are committed, offsets of groups, ends of all partitions."""

import threading
from collections.abc import Iterable

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import MetadataRequest
from barnabas.protocol.messages.group_offsets import OffsetFetchRequest, OffsetFetchRequestTopic
from barnabas.protocol.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from support.eos_runs.checker import End
from support.eos_runs.orders import RECONNECT_MS_MAX
from support.eos_runs.records import Seen, seen
from support.wire.client import WireClient

LATEST = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
METADATA_VERSION = 9
LIST_OFFSETS_VERSION = 5
OFFSET_FETCH_VERSION = 7
POLL_S = 0.1
POLL_RECORDS = 1000
JOIN_TIMEOUT_S = 120


class Reader(threading.Thread):
    """Reads a topic with read_committed, from its beginning, until it is told that nothing more comes."""

    def __init__(self, address: str, topic: str, partitions: int) -> None:
        super().__init__(name=f"reader-{topic}")
        self._settings = {
            "bootstrap.servers": address,
            "group.id": "reads-without-a-group",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
            "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
            # That the broker is gone for a while is no news here.
            "log_level": 0,
        }
        self._places = [TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)]
        self._is_enough = threading.Event()
        self._is_abandoned = threading.Event()
        self._failure: BaseException | None = None
        self.records: dict[int, list[Seen]] = {each: [] for each in range(partitions)}

    def run(self) -> None:
        try:
            consumer = Consumer(self._settings)
            consumer.assign(self._places)
            self._read(consumer)
            consumer.close()
        except BaseException as failure:
            self._failure = failure

    def _read(self, consumer: Consumer) -> None:
        left: set[int] = set()
        is_ending = False
        while (not is_ending or left) and not self._is_abandoned.is_set():
            if not is_ending and self._is_enough.is_set():
                # Begin anew at the same places: so that the end of each is told once more.
                is_ending, left = True, set(self.records)
                consumer.assign(self._onward())
            for message in consumer.consume(POLL_RECORDS, POLL_S):
                error, where = message.error(), message.partition()
                if error is None:
                    self.records[where].append(seen(message.offset(), message.value()))
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(where)

    def _onward(self) -> list[TopicPartition]:
        return [
            TopicPartition(
                place.topic, place.partition, records[-1].offset + 1 if records else OFFSET_BEGINNING
            )
            for place in self._places
            for records in [self.records[place.partition]]
        ]

    def finish(self) -> dict[int, list[Seen]]:
        """Read to the end as it is now, and end. What was read since the beginning."""
        self._is_enough.set()
        self.join(JOIN_TIMEOUT_S)
        assert not self.is_alive(), f"{self.name} does not come to the end of its topic"
        if self._failure is not None:
            raise self._failure
        return self.records

    def abandon(self) -> None:
        """Whatever it has read."""
        self._is_abandoned.set()
        self.join(JOIN_TIMEOUT_S)


def read_all(address: str, topic: str, partitions: int) -> dict[int, list[Seen]]:
    reader = Reader(address, topic, partitions)
    reader.start()
    return reader.finish()


def committed_offsets(address: str, group: str, topic: str, partitions: int) -> dict[int, int]:
    """-1 where nothing is committed. Offsets of transactions that are not over do not count."""
    asked = OffsetFetchRequestTopic(name=topic, partition_indexes=list(range(partitions)))
    with WireClient(address) as client:
        answer = client.ask(OffsetFetchRequest(group_id=group, topics=[asked]), OFFSET_FETCH_VERSION)
    assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code).name
    return {one.partition_index: one.committed_offset for topic in answer.topics for one in topic.partitions}


def all_ends(address: str) -> list[End]:
    """Of every partition that the broker has, with those of its own topics."""
    with WireClient(address) as client:
        found = client.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False), METADATA_VERSION)
        ends: list[End] = []
        for topic in found.topics:
            partitions = sorted(each.partition_index for each in topic.partitions)
            all_of_it = _ends(client, topic.name, partitions, READ_UNCOMMITTED)
            stable = _ends(client, topic.name, partitions, READ_COMMITTED)
            ends += [End(f"{topic.name}-{each}", all_of_it[each], stable[each]) for each in partitions]
    return ends


def _ends(client: WireClient, topic: str, partitions: Iterable[int], isolation: int) -> dict[int, int]:
    places = [ListOffsetsPartition(partition_index=each, timestamp=LATEST) for each in partitions]
    asked = ListOffsetsRequest(
        replica_id=-1, isolation_level=isolation, topics=[ListOffsetsTopic(name=topic, partitions=places)]
    )
    found = client.ask(asked, LIST_OFFSETS_VERSION).topics[0].partitions
    for each in found:
        assert each.error_code == ErrorCode.NONE, f"{topic}: {ErrorCode(each.error_code).name}"
    return {each.partition_index: each.offset for each in found}
