"""How many commits a second does a broker acknowledge?

Simple commits, without members, of one partition each, over raw sockets: the bytes of a request are made
beforehand and of every answer only the length is looked at (and, of the first and the last, the error). One
connection, which waits for every answer; then twenty, each with a group of its own, which do the same.

Expected cost of ours: 18 to 25 microseconds of the broker for a request, of which 8 to 10 are the system's:
to receive, to write, to send.
"""

import select
import socket
import time
from collections.abc import Iterator

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import decode_response
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from broker_pair import Broker, create_topic
from broker_requests import await_leader
from broker_rows import Answer, more_is_better
from groups_load import Turn, await_coordinator, frame_of
from groups_pair import Scene, note

AIM = 1.5
VERSION = 9
TOPIC = "bench-commits"
COMMITS = 20_000
QUICK_COMMITS = 2_000
CONNECTIONS = (1, 20)
ANSWER_MAX = 1 << 16
ANSWER_TIMEOUT_S = 30.0


def commit_rows(scene: Scene) -> Iterator[Answer]:
    count = scene.sized(COMMITS, QUICK_COMMITS)
    with scene.running("commits") as pair:
        for broker in (pair.ours, pair.theirs):
            create_topic(broker, TOPIC)
            await_leader(broker.address, TOPIC)
        for connections in CONNECTIONS:

            def run(broker: Broker, connections: int = connections) -> Turn:
                return commit_turn(broker, count, connections)

            where = "1 connection" if connections == 1 else f"{connections} connections"
            ours, theirs = pair.alternate(run, scene.rounds)
            busy = [100 * max(turn.client_share for turn in turns) for turns in (ours, theirs)]
            note(f"commits, {where}: the client was busy {busy[0]:.0f}% and {busy[1]:.0f}%")
            mine, others = ([count / turn.seconds / 1000 for turn in turns] for turns in (ours, theirs))
            yield more_is_better(f"commits, {where}", mine, others, "k commits/s", AIM)


def commit_turn(broker: Broker, count: int, connections: int) -> Turn:
    lines = [CommitLine(broker.address, f"bench-commits-{number:02d}") for number in range(connections)]
    try:
        used, begun = time.process_time(), time.perf_counter()
        if len(lines) == 1:
            lines[0].run(count)
        else:
            run_all(lines, count)
        took = time.perf_counter() - begun
        for line in lines:
            line.check()
        return Turn(took, (time.process_time() - used) / took)
    finally:
        for line in lines:
            line.close()


class CommitLine:
    """One connection that commits the same offset of one group again and again."""

    def __init__(self, address: str, group: str) -> None:
        await_coordinator(address, group)
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=ANSWER_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.frame = frame_of(commit_of(group, TOPIC, range(1), 7), VERSION, ApiKey.OFFSET_COMMIT)
        self.check()

    def check(self) -> None:
        """Commit once more, and look at the answer. All others have its size."""
        self.socket.sendall(self.frame)
        data = self.socket.recv(ANSWER_MAX)
        self.answer_size = 4 + int.from_bytes(data[:4])
        while len(data) < self.answer_size:
            data += self.socket.recv(ANSWER_MAX)
        refuse_errors(data[4:])

    def run(self, count: int) -> None:
        sock, frame, size = self.socket, self.frame, self.answer_size
        for _ in range(count):
            sock.sendall(frame)
            left = size
            while left:
                left -= len(sock.recv(left))

    def close(self) -> None:
        self.socket.close()


def run_all(lines: list[CommitLine], count: int) -> None:
    """Each sends again when it is answered, until all together have committed so often."""
    by_number = {line.socket.fileno(): line for line in lines}
    came = dict.fromkeys(by_number, 0)
    poll = select.epoll()
    for number, line in by_number.items():
        poll.register(number, select.EPOLLIN)
        line.socket.sendall(line.frame)
    to_send, to_come = count - len(lines), count
    while to_come:
        ready = poll.poll(ANSWER_TIMEOUT_S)
        assert ready, f"nothing came for {ANSWER_TIMEOUT_S} s"
        for number, _ in ready:
            line = by_number[number]
            came[number] += len(line.socket.recv(ANSWER_MAX))
            if came[number] < line.answer_size:
                continue
            came[number] = 0
            to_come -= 1
            if to_send:
                line.socket.sendall(line.frame)
                to_send -= 1
    poll.close()


def commit_of(group: str, topic: str, partitions: range, offset: int) -> OffsetCommitRequest:
    places = [
        OffsetCommitRequestPartition(partition_index=where, committed_offset=offset, committed_metadata="")
        for where in partitions
    ]
    return OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=places)]
    )


def refuse_errors(answer: bytes) -> None:
    _, body = decode_response(answer, VERSION, key=ApiKey.OFFSET_COMMIT)
    for topic in body.topics:
        for place in topic.partitions:
            assert place.error_code == 0, ErrorCode(place.error_code).name
