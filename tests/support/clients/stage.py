"""What a story of the checklist finds in place: a broker, topics of its own, and a plain connection.

Topics and records that a story is not about are made over that connection, request by request, so that every
client finds exactly the same batches. It is also how a story looks at what a client left in the log.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Protocol

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.group_admin import DescribeGroupsRequest
from barnabas.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from barnabas.records.builder import NewRecord, build_batch
from barnabas.records.header import BatchHeader, Codec, batch_headers
from support.clients.client import WAIT_SECONDS_MAX
from support.clients.group_client import HEARTBEAT_MS, GroupProtocol
from support.wire.client import WireClient

_LATEST = -1
_FETCH_BYTES_MAX = 50_000_000
_LOOK_AGAIN_AFTER_S = 0.02
_numbers = count()

# For a broker whose groups the stories are about: nobody waits for others who may join, and by the new
# protocol members hear as often of each other as they do by the classic one.
GROUP_SETTINGS: Mapping[str, object] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.min.heartbeat.interval.ms": HEARTBEAT_MS,
    "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
}


class Broker(Protocol):
    """Kafka's or ours: support.kafka.broker and support.process.our_broker."""

    address: str
    logs: Path

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...


def wait_until(is_so: Callable[[], bool], what: str, *, within_s: float = WAIT_SECONDS_MAX) -> None:
    """Look again and again, but not for ever."""
    deadline = monotonic() + within_s
    while not is_so():
        assert monotonic() < deadline, f"{what}: not within {within_s} seconds"
        sleep(_LOOK_AGAIN_AFTER_S)


class Stage:
    """For one story with one client."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.broker = broker
        self.address = broker.address
        self._name = name

    def fresh_name(self) -> str:
        """A topic that is not there yet; a broker may see many stories."""
        return f"{self._name}-{next(_numbers)}"

    def topic(self, *, partitions: int = 1, settings: Mapping[str, str] | None = None) -> str:
        """A new topic, and every partition of it has a leader that serves it."""
        name = self.fresh_name()
        configs = [CreatableTopicConfig(name=key, value=value) for key, value in (settings or {}).items()]
        new = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=configs
        )
        [made] = self._ask(CreateTopicsRequest(topics=[new], timeout_ms=10_000), 5).topics
        assert made.error_code == ErrorCode.NONE, f"{ErrorCode(made.error_code).name}: {made.error_message}"
        wait_until(lambda: self.partitions(name) == partitions, f"{name} has {partitions} partitions")
        # Kafka names a leader a moment before that one has made all of its logs. A client that is refused in
        # one partition and sends all of them again, as kafkajs does, would tell a story of its own.
        wait_until(lambda: self._is_served(name, partitions), f"all partitions of {name} are served")
        return name

    def partitions(self, topic: str) -> int:
        """How many have a leader; none if there is no such topic."""
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        [found] = self._ask(asked, 9).topics
        if found.error_code != ErrorCode.NONE:
            return 0
        return sum(each.error_code == ErrorCode.NONE and each.leader_id >= 0 for each in found.partitions)

    def write(
        self, topic: str, records: Sequence[NewRecord], *, partition: int = 0, codec: Codec = Codec.NONE
    ) -> int:
        """Append one batch to a partition and return the offset of its first record."""
        data = PartitionProduceData(index=partition, records=build_batch(records, codec=codec))
        asked = ProduceRequest(
            acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
        )
        [answer] = self._ask(asked, 9).responses[0].partition_responses
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code).name
        return int(answer.base_offset)

    def end(self, topic: str, partition: int = 0) -> int:
        """The offset that the next record gets."""
        [answer] = self._ends(topic, [partition])
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code).name
        return int(answer.offset)

    def _is_served(self, topic: str, partitions: int) -> bool:
        return all(each.error_code == ErrorCode.NONE for each in self._ends(topic, range(partitions)))

    def _ends(self, topic: str, partitions: Iterable[int]) -> Sequence[Any]:
        places = [ListOffsetsPartition(partition_index=each, timestamp=_LATEST) for each in partitions]
        asked = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=places)])
        found: Sequence[Any] = self._ask(asked, 5).topics[0].partitions
        return found

    def batches(self, topic: str) -> list[BatchHeader]:
        """What partition 0 holds, batch by batch."""
        headers: list[BatchHeader] = []
        end, at = self.end(topic), 0
        while at < end:
            headers += [header for _, header in batch_headers(self._fetch(topic, at))]
            assert headers[-1].next_offset > at, f"nothing was fetched at {at} of {end}"
            at = headers[-1].next_offset
        return headers

    def _fetch(self, topic: str, at: int) -> bytes:
        place = FetchPartition(partition=0, fetch_offset=at, partition_max_bytes=_FETCH_BYTES_MAX)
        asked = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=topic, partitions=[place])])
        [answer] = self._ask(asked, 11).responses[0].partitions
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code).name
        return bytes(answer.records)

    def delete_records(self, topic: str, *, before: int) -> None:
        place = DeleteRecordsPartition(partition_index=0, offset=before)
        asked = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[place])], timeout_ms=10_000
        )
        [answer] = self._ask(asked, 1).topics[0].partitions
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code).name

    def instances(self, group: str, protocol: GroupProtocol) -> set[str | None]:
        """Of those who are in the group, whether they are there or only expected back."""
        members = self._group(group, protocol).members
        return {each.group_instance_id if protocol == "classic" else each.instance_id for each in members}

    def state(self, group: str, protocol: GroupProtocol) -> str:
        return str(self._group(group, protocol).group_state)

    def _group(self, group: str, protocol: GroupProtocol) -> Any:
        if protocol == "classic":
            [found] = self._ask(DescribeGroupsRequest(groups=[group]), 5).groups
        else:
            [found] = self._ask(ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups
        return found

    def cluster_id(self) -> str:
        """What is written beside the logs."""
        [found] = {
            line.partition("=")[2]
            for path in self.broker.logs.rglob("meta.properties")
            for line in path.read_text().splitlines()
            if line.startswith("cluster.id=")
        }
        return found

    def _ask(self, body: object, version: int) -> Any:
        # A connection each, because the broker may be restarted between two questions.
        with WireClient(self.address) as wire:
            return wire.ask(body, version)
