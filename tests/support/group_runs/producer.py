"""The load: numbered records to every partition of a topic, all the while, over one plain connection.

A batch is sent when the one before has been acknowledged, so what was acknowledged is known exactly: the
records 0 to n-1 of each partition. support.group_runs.journal.value_of says what they hold. After a
connection was lost, the log itself is asked how far it has come: what is in it is to be read, too.
"""

import threading
import time
from contextlib import suppress

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.records.builder import build_batch
from support.group_runs.journal import value_of
from support.wire.client import ConnectionClosed, WireClient

PRODUCE_VERSION = 9
LIST_OFFSETS_VERSION = 5
LATEST = -1
BATCH_RECORDS = 10
EVERY_S = 0.02
STOP_TIMEOUT_S = 30
# A broker that restarts is waited for; one that refuses for another reason is not.
TRY_AGAIN_AFTER_S = 0.05
NOT_NOW = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class NotServed(Exception):
    """A partition has no leader at the moment."""


class NumberedProducer:
    """`acknowledged` has the number of records for each partition; to be read after stop()."""

    def __init__(self, address: str, topic: str, partitions: int) -> None:
        self._address = address
        self._topic = topic
        self.acknowledged = dict.fromkeys(range(partitions), 0)
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="numbered-producer")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(STOP_TIMEOUT_S)
        assert not self._thread.is_alive(), "the producer does not end"
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                # The broker may be restarted meanwhile; the connection is made again.
                with suppress(ConnectionClosed, ConnectionError, TimeoutError, NotServed):
                    self._produce()
                self._stopping.wait(TRY_AGAIN_AFTER_S)
        except BaseException as failure:
            self._failure = failure

    def _produce(self) -> None:
        with WireClient(self._address) as client:
            self._find_ends(client)
            due = time.monotonic()
            while not self._stopping.wait(max(0.0, due - time.monotonic())):
                due = time.monotonic() + EVERY_S
                answer = client.ask(self._next_request(), PRODUCE_VERSION)
                for told in answer.responses[0].partition_responses:
                    self._note(told.index, ErrorCode(told.error_code), told.base_offset)

    def _find_ends(self, client: WireClient) -> None:
        places = [ListOffsetsPartition(partition_index=each, timestamp=LATEST) for each in self.acknowledged]
        asked = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=self._topic, partitions=places)]
        )
        for told in client.ask(asked, LIST_OFFSETS_VERSION).topics[0].partitions:
            error, where = ErrorCode(told.error_code), told.partition_index
            self._accept(where, error)
            known = self.acknowledged[where]
            assert told.offset >= known, f"{self._topic}-{where}: {told.offset} of {known} are left"
            self.acknowledged[where] = told.offset

    def _accept(self, partition: int, error: ErrorCode) -> None:
        if error in NOT_NOW:
            raise NotServed
        assert error is ErrorCode.NONE, f"{self._topic}-{partition}: {error.name}"

    def _next_request(self) -> ProduceRequest:
        now_ms = time.time_ns() // 1_000_000
        data = []
        for partition, next_number in self.acknowledged.items():
            numbers = range(next_number, next_number + BATCH_RECORDS)
            records = build_batch([(now_ms, None, value_of(partition, number), ()) for number in numbers])
            data.append(PartitionProduceData(index=partition, records=records))
        topic = TopicProduceData(name=self._topic, partition_data=data)
        return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])

    def _note(self, partition: int, error: ErrorCode, base_offset: int) -> None:
        self._accept(partition, error)
        expected = self.acknowledged[partition]
        assert base_offset == expected, f"{self._topic}-{partition}: {base_offset} where {expected} was due"
        self.acknowledged[partition] += BATCH_RECORDS
