"""A broker that was asked just now does not sleep until it is asked again: seen by how often it is woken."""

from pathlib import Path

import pytest

from barnabas.base.processors import processors
from barnabas.protocol.messages.cluster import ApiVersionsRequest
from support.process.our_broker import OurBroker
from support.wire.client import WireClient

REQUESTS = 1_000
# Other tests want the processor as well, and where they do it gives way.
TRIES = 30


def times_woken(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("voluntary_ctxt_switches")).split()[1])


def woken_by_requests(address: str, pid: int) -> int:
    with WireClient(address) as client:
        before = times_woken(pid)
        for _ in range(REQUESTS):
            client.ask(ApiVersionsRequest(), 0)
        return times_woken(pid) - before


@pytest.mark.skipif(processors() < 2, reason="with one processor it has to sleep")
def test_a_client_that_asks_again_at_once_finds_the_loop_awake(tmp_path: Path) -> None:
    broker = OurBroker(tmp_path)
    with broker.running() as address:
        assert broker.process is not None
        pid = broker.process.pid

        assert any(woken_by_requests(address, pid) < REQUESTS // 2 for _ in range(TRIES))
