"""The broker's part of the tour: start one as a user does, and speak to it over its socket.

There is no client of our own yet, so requests are made of their messages by hand.
"""

import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from typing import Any, Final

from barnabas.base.errors import BarnabasError
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.exchange import decode_response, encode_request
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.records.builder import build_batch
from barnabas.records.decode import decode_batch

TOPIC: Final = "letters"
_READY: Final = "ready: "
_TIMEOUT_S: Final = 30


class DemoFailed(BarnabasError):
    """The broker of the tour did not do what it was to show."""


def show_broker(count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="barnabas-demo-") as directory:
        command = [sys.executable, "-m", "barnabas.cli.main", "up", "--dir", directory, "--port", "0"]
        began = time.monotonic()
        with subprocess.Popen(
            [*command, "--log-level", "warning"], stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                if not line.startswith(_READY):
                    raise DemoFailed("the broker did not start")
                print(f"\na broker: serves after {(time.monotonic() - began) * 1000:.0f} ms, {line.strip()}")
                host, _, port = line.removeprefix(_READY).strip().rpartition(":")
                with closing(socket.create_connection((host, int(port)), _TIMEOUT_S)) as sock:
                    _write_and_read(sock, count)
            finally:
                process.terminate()
        print(f"  stopped cleanly: exit code {process.returncode}")


def _write_and_read(sock: socket.socket, count: int) -> None:
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    made = _ask(sock, ApiKey.CREATE_TOPICS, 6, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    if made.topics[0].error_code != 0:
        raise DemoFailed(f"the topic was not made: error {made.topics[0].error_code}")
    now_ms = time.time_ns() // 1_000_000
    # Small enough for one batch of a topic that nobody has set up otherwise.
    batch = build_batch([(now_ms, b"to %d" % at, b"from the castle", ()) for at in range(min(count, 10_000))])
    data = PartitionProduceData(index=0, records=batch)
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])]
    )
    began = time.monotonic()
    done = _ask(sock, ApiKey.PRODUCE, 9, request).responses[0].partition_responses[0]
    if done.error_code != 0:
        raise DemoFailed(f"the batch was not taken: error {done.error_code}")
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=len(batch))
    fetch = FetchRequest(max_wait_ms=1000, min_bytes=1, topics=[FetchTopic(topic=TOPIC, partitions=[asked])])
    found = _ask(sock, ApiKey.FETCH, 11, fetch).responses[0].partitions[0]
    records = decode_batch(bytes(found.records or b""))
    took_ms = (time.monotonic() - began) * 1000
    print(f"  {len(records)} records produced with acks=all and fetched again in {took_ms:.1f} ms")
    print(f"  the last: offset {records[-1].offset}, {records[-1].key!r}: {records[-1].value!r}")


def _ask(sock: socket.socket, key: ApiKey, version: int, body: object) -> Any:
    sock.sendall(encode_request(body, version, key=key, correlation_id=1, client_id="demo"))
    size = int.from_bytes(_receive(sock, 4), "big")
    return decode_response(_receive(sock, size), version, key=key)[1]


def _receive(sock: socket.socket, size: int) -> bytes:
    parts, left = [], size
    while left > 0:
        part = sock.recv(left)
        if not part:
            raise DemoFailed("the broker closed the connection")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
