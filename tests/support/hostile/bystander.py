"""A well-behaved client of a broker under attack: produces and fetches until its standard input ends.

python -m support.hostile.bystander HOST:PORT

Prints `served` after the first round, and a JSON object at the end: how many requests it sent, the longest
that one took, and the error that ended it early.
"""

import json
import select
import sys
import time

from barnabas.protocol.messages.topics import CreateTopicsRequest
from support.wire.client import ConnectionClosed, WireClient
from support.wire.requests import (
    TIMEOUT_MS,
    batch,
    fetch_of,
    fetched,
    new_topic,
    produce_of,
    produced,
    records_of,
)

TOPIC = "bystander"
# Its batches have a fixed timestamp of the past.
SETTINGS = {"retention.ms": "-1"}
PAUSE_S = 0.02
# What one request may take before the client gives up; far more than any test allows.
TIMEOUT_S = 60.0


def main(address: str) -> int:
    requests, slowest_s, error = 0, 0.0, None
    with WireClient(address, timeout_s=TIMEOUT_S) as client:
        client.ask(CreateTopicsRequest(topics=[new_topic(TOPIC, 1, SETTINGS)], timeout_ms=TIMEOUT_MS), 5)
        try:
            while not select.select([sys.stdin], [], [], PAUSE_S)[0]:
                started = time.monotonic()
                offset = produced(client.ask(produce_of(TOPIC, 0, batch(b"hello"), acks=1), 9)).base_offset
                produced_at = time.monotonic()
                answer = client.ask(fetch_of(TOPIC, {0: offset}), 12)
                slowest_s = max(slowest_s, produced_at - started, time.monotonic() - produced_at)
                found = fetched(answer)
                assert len(records_of(found)) == 1, f"error {found.error_code} at offset {offset}"
                requests += 2
                if requests == 2:
                    slowest_s = 0.0
                    print("served", flush=True)
        except (ConnectionClosed, OSError, AssertionError) as failed:
            error = repr(failed)
    print(json.dumps({"requests": requests, "slowest_s": slowest_s, "error": error}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
