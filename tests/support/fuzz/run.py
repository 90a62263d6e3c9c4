"""One run of mutated requests against a live broker, with what keeps it bounded and what checks it.

    with LiveFuzz(victim, seed=1, folder=tmp_path) as fuzz:
        fuzz.prepare()
        fuzz.run(30_000)
        fuzz.check_records()

While requests are sent, a housekeeper deletes topics and groups that they created, so that the broker's disk
and memory stay bounded; a well-behaved producer writes records that must all be there afterwards; and the
broker's log is searched for tracebacks. After a failure the last batches are in `fuzz-failure.jsonl`:

    python -m support.fuzz.replay FILE
"""

import base64
import json
import os
import time
from collections import deque
from pathlib import Path
from typing import Any, Final, Self

from barnabas.base.ids import ZERO_UUID
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import MetadataRequest
from barnabas.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResourceRequest,
)
from barnabas.protocol.messages.group_admin import DeleteGroupsRequest, ListGroupsRequest
from barnabas.protocol.messages.topics import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from support.fuzz.lanes import FuzzFailure, Lane, Tally, run_lanes
from support.fuzz.requests import Batch, RequestMutator
from support.fuzz.words import TOPICS, Words
from support.hostile.bystander import TOPIC as BYSTANDER
from support.hostile.victim import Victim
from support.wire.client import WireClient
from support.wire.requests import (
    TIMEOUT_MS,
    batch,
    fetch_of,
    fetched,
    new_topic,
    produce_of,
    produced,
    values_of,
)

LANES: Final = 48
# So that memory and disk stay bounded, and nobody's offsets or transactions live for a week.
SETTINGS: Final = {
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "group.initial.rebalance.delay.ms": 0,
    "group.max.session.timeout.ms": 10_000,
    "group.consumer.session.timeout.ms": 10_000,
    "group.consumer.min.session.timeout.ms": 10_000,
    "group.consumer.max.session.timeout.ms": 10_000,
    "group.consumer.heartbeat.interval.ms": 1000,
    "group.consumer.min.heartbeat.interval.ms": 1000,
    "transaction.max.timeout.ms": 10_000,
    "transactional.id.expiration.ms": 20_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 5000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 2000,
    "producer.id.expiration.ms": 20_000,
    "producer.id.expiration.check.interval.ms": 5000,
    # A lane that gives up leaves a connection behind, which waits for a JoinGroup and is not read meanwhile.
    "connections.max.idle.ms": 10_000,
    "log.retention.bytes": 10 << 20,
    "log.segment.bytes": 2 << 20,
    "log.retention.check.interval.ms": 5000,
}
KEPT: Final = "kept-records"
# Said by the topics themselves, because mutated requests change the defaults of the broker.
_KEPT_SETTINGS: Final = {
    "message.timestamp.before.max.ms": 2**63 - 1,
    "message.timestamp.after.max.ms": 2**63 - 1,
    "segment.bytes": 1 << 20,
    "retention.ms": -1,
    "retention.bytes": -1,
    "cleanup.policy": "delete",
    "max.message.bytes": 1 << 20,
    "min.insync.replicas": 1,
    "message.timestamp.type": "CreateTime",
    "compression.type": "producer",
    "local.retention.ms": -2,
}
_HOUSEKEEPING_S: Final = 1.0
# Topics are deleted and created again this often, with the records that mutated requests wrote.
_FRESH_TOPICS_S: Final = 30.0
_LOOK_S: Final = 0.5
_RECORDS_EACH: Final = 5
_RECENT_BATCHES_MAX: Final = 600
# The broker appends to its log, so it can be emptied while it runs.
_LOG_BYTES_MAX: Final = 64 << 20
FAILURE_FILE: Final = "fuzz-failure.jsonl"
_TRACEBACK: Final = b"Traceback"


class LiveFuzz:
    def __init__(self, victim: Victim, *, seed: int, folder: Path, lanes: int = LANES) -> None:
        self.words = Words()
        self.tally = Tally()
        self.mutator = RequestMutator(seed, self.words)
        self._victim = victim
        self._seed = seed
        self._folder = folder
        self._lanes_count = lanes
        self._recent: deque[Batch] = deque(maxlen=_RECENT_BATCHES_MAX)
        self._next_batch = 0
        self._stop_at = 0
        self._written: list[bytes] = []
        self._client: WireClient | None = None
        self._log_read = 0
        self._next_look_s = self._next_house_s = self._next_fresh_s = 0.0

    # The story

    def prepare(self) -> None:
        """Create the topics that requests are about, and the one whose records must stay."""
        self._create({KEPT: _KEPT_SETTINGS, BYSTANDER: _KEPT_SETTINGS})
        self._housekeep(fresh=False)
        self._write_records()

    def run(self, requests: int) -> None:
        """Send so many more requests."""
        self._stop_at = self.tally.sent + requests
        self._next_fresh_s = time.monotonic() + _FRESH_TOPICS_S
        lanes = [
            Lane(self._victim.address, number, self._take_batch, self.words, self.tally)
            for number in range(self._lanes_count)
        ]
        try:
            run_lanes(lanes, self._turn)
            self._look_at_log()
        except AssertionError as failed:
            raise FuzzFailure(f"{failed}\n{self._keep()}") from failed
        finally:
            for lane in lanes:
                lane.close()
        self._housekeep(fresh=False)
        self._look_at_log()

    def check_records(self) -> None:
        """Read back what the well-behaved producer was told is written."""
        found: list[bytes | None] = []
        with WireClient(self._victim.address) as client:
            while len(found) < len(self._written):
                answer = client.ask(fetch_of(KEPT, {0: len(found)}), 12)
                values = values_of(fetched(answer))
                assert values, f"{len(found)} of {len(self._written)} records are there"
                found += values
        assert found == self._written

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the connection go, before the broker stops."""
        if self._client is not None:
            self._client.close()
            self._client = None

    # While requests are sent

    def _take_batch(self) -> Batch | None:
        if self.tally.sent >= self._stop_at:
            return None
        taken = self.mutator.batch(self._next_batch)
        self._next_batch += 1
        self._recent.append(taken)
        return taken

    def _turn(self, now_s: float) -> None:
        if now_s >= self._next_look_s:
            self._next_look_s = now_s + _LOOK_S
            assert self._victim.is_running, f"the broker ended:\n{self._victim.log[-3000:]}"
            self._look_at_log()
            self._write_records()
        if now_s >= self._next_house_s:
            self._next_house_s = now_s + _HOUSEKEEPING_S
            fresh = now_s >= self._next_fresh_s
            if fresh:
                self._next_fresh_s = now_s + _FRESH_TOPICS_S
            self._housekeep(fresh=fresh)

    def _look_at_log(self) -> None:
        path = self._victim.output
        with path.open("rb") as file:
            file.seek(self._log_read)
            new = file.read()
        at = new.find(_TRACEBACK)
        if at >= 0:
            raise FuzzFailure(f"the broker's log has a traceback:\n{new[max(0, at - 300) :][:4000].decode()}")
        self._log_read += len(new)
        if self._log_read > _LOG_BYTES_MAX:
            os.truncate(path, 0)
            self._log_read = 0

    def _write_records(self) -> None:
        values = [b"record %d" % (len(self._written) + number) for number in range(_RECORDS_EACH)]
        answer = produced(self._ask(produce_of(KEPT, 0, batch(*values), -1), 9))
        assert answer.error_code == 0, ErrorCode(answer.error_code).name
        assert answer.base_offset == len(self._written)
        self._written += values

    # Housekeeping

    def _housekeep(self, *, fresh: bool) -> None:
        """Delete what is not to stay, create what is missing, and take back settings of brokers."""
        topics = {topic.name: topic for topic in self._ask(MetadataRequest(topics=None), 12).topics}
        stay = {KEPT, BYSTANDER, *(() if fresh else TOPICS)}
        unwanted = [name for name in topics if name not in stay and not topics[name].is_internal]
        if unwanted:
            states = [DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in unwanted]
            self._ask(DeleteTopicsRequest(topics=states, timeout_ms=TIMEOUT_MS), 6)
        missing = [name for name in TOPICS if fresh or name not in topics]
        if missing:
            self._create({name: {} for name in missing}, partitions=4)
            topics = {topic.name: topic for topic in self._ask(MetadataRequest(topics=None), 12).topics}
        self.words.topic_ids = {name: topics[name].topic_id for name in TOPICS if name in topics}
        groups = [group.group_id for group in self._ask(ListGroupsRequest(), 5).groups]
        if groups:
            self._ask(DeleteGroupsRequest(groups_names=groups), 2)
        self._reset_settings()

    def _reset_settings(self) -> None:
        resources = [
            AlterConfigsResourceRequest(resource_type=4, resource_name=name, configs=[]) for name in ("", "1")
        ]
        self._ask(AlterConfigsRequest(resources=resources), 2)

    def _create(self, wanted: dict[str, dict[str, Any]], *, partitions: int = 1) -> None:
        topics = [new_topic(name, partitions, configs) for name, configs in wanted.items()]
        answer = self._ask(CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS), 7)
        for one in answer.topics:
            # A mutated request may have been faster.
            assert one.error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS), one.error_message

    def _ask(self, body: object, version: int) -> Any:
        if self._client is None:
            self._client = WireClient(self._victim.address)
        return self._client.ask(body, version)

    # A failure

    def _keep(self) -> str:
        """Write down the last batches; how to send them again."""
        path = self._folder / FAILURE_FILE
        ids = {name: base64.b64encode(one).decode() for name, one in self.words.topic_ids.items()}
        lines = [json.dumps({"seed": self._seed, "topic_ids": ids})]
        for one in self._recent:
            frames = [base64.b64encode(frame).decode() for frame in one.frames]
            lines.append(json.dumps([one.number, frames, base64.b64encode(one.end).decode()]))
        path.write_text("\n".join(lines) + "\n")
        return f"seed {self._seed}; to send the last batches again: python -m support.fuzz.replay {path}"
