"""One batch with very many wrong records: others are served while it is refused."""

from pathlib import Path

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.topics import CreateTopicsRequest
from barnabas.records.builder import build_batch
from barnabas.records.header import Codec
from support.hostile.victim import SERVED_WITHIN_S, Victim
from support.wire.client import WireClient
from support.wire.requests import TIMEOUT_MS, new_topic, produce_of, produced

# A batch of one megabyte, which every topic takes.
COUNT = 1_000_000
BATCHES = 20
# After message.timestamp.after.max.ms, as far as the batch's header says.
TOO_LATE_MS = 4_000_000_000_000


def test_a_batch_of_a_million_wrong_records_is_refused_at_once(tmp_path: Path) -> None:
    data = build_batch([(TOO_LATE_MS, None, b"", ())] * COUNT, codec=Codec.ZSTD)
    with Victim(tmp_path) as victim:
        with WireClient(victim.address) as client:
            request = produce_of("t", 0, data, acks=-1)
            topic = new_topic("t", 1, {"max.message.bytes": len(data)})
            client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), 5)
            with victim.bystander() as bystander:
                answers = [produced(client.ask(request, 9)) for _ in range(BATCHES)]
                # The memory that unpacking took is used again.
                before_mb = victim.rss_mb
                answers += [produced(client.ask(request, 9)) for _ in range(BATCHES)]
        assert {answer.error_code for answer in answers} == {ErrorCode.INVALID_TIMESTAMP}
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.memory_returns_to(before_mb)
        victim.check()
