"""A well-behaved client beside the others: it writes, reads back and measures, all the time.

It stands for everybody who did nothing wrong. After whatever the others did, it must have gone on, every
record must have come back, and no round may have taken long.
"""

import threading
from time import monotonic, time
from typing import Any

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.records.builder import build_batch
from barnabas.records.decode import decode_batch
from support.clients.stage import wait_until
from support.wire.client import WireClient

# Between two rounds, so that it leaves the broker to the others.
PAUSE_S = 0.01
_PRODUCE_VERSION, _FETCH_VERSION = 9, 11
_FETCH_BYTES_MAX = 1_000_000


class Neighbour:
    """Runs in a thread from start() to stop(). A round is one record written and read back."""

    def __init__(self, address: str, topic: str) -> None:
        self._address = address
        self._topic = topic
        self._latencies: list[float] = []
        self._failure: BaseException | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self.wait_for_rounds(1)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(30)
        assert not self._thread.is_alive(), "the neighbour hangs"
        self.check()

    def wait_for_rounds(self, more: int) -> None:
        """Until it has gone on by so many rounds."""
        wanted = len(self._latencies) + more
        wait_until(lambda: self._failure is not None or len(self._latencies) >= wanted, f"{more} rounds")
        self.check()

    def check(self) -> None:
        if self._failure is not None:
            raise AssertionError("the neighbour was harmed") from self._failure

    def mark(self) -> int:
        """Where slowest_since() begins."""
        return len(self._latencies)

    def slowest_since(self, mark: int) -> float:
        """Seconds of the slowest round that ended since; one more is waited for, as it may hang just now."""
        self.wait_for_rounds(2)
        return max(self._latencies[mark:])

    def _run(self) -> None:
        try:
            with WireClient(self._address) as wire:
                number = 0
                while not self._stopped.wait(PAUSE_S):
                    started = monotonic()
                    self._round(wire, number)
                    self._latencies.append(monotonic() - started)
                    number += 1
        except BaseException as error:
            self._failure = error

    def _round(self, wire: WireClient, number: int) -> None:
        value = b"%d" % number
        # A record that is old would be deleted by retention, perhaps before it is read back.
        now_ms = int(time() * 1000)
        data = PartitionProduceData(index=0, records=build_batch([(now_ms, None, value, ())]))
        topic = TopicProduceData(name=self._topic, partition_data=[data])
        answer = wire.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic]), _PRODUCE_VERSION)
        written = _fine(answer.responses[0].partition_responses[0])
        assert written.base_offset == number, f"record {number} is at {written.base_offset}"
        place = FetchPartition(
            partition=0, fetch_offset=number, partition_max_bytes=_FETCH_BYTES_MAX, log_start_offset=-1
        )
        asked = FetchRequest(
            max_wait_ms=1000, min_bytes=1, topics=[FetchTopic(topic=self._topic, partitions=[place])]
        )
        found = _fine(wire.ask(asked, _FETCH_VERSION).responses[0].partitions[0])
        assert [record.value for record in decode_batch(bytes(found.records))] == [value]


def _fine(answer: Any) -> Any:
    assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code).name
    return answer
