"""How fast and how light is a broker inside a test, beside an Apache Kafka 4.3.0 node started for that test?

Ours is `barnabas.testing.Broker` in a fresh Python each time; theirs is a JVM on a directory that was
formatted before. Both have one topic made, and take one record through a raw socket: the clock stops when it
is acknowledged. It starts with the process, with the import of barnabas.testing, or with the second broker of
a process, which has everything imported. Then 50 brokers are started and stopped one after another, and what
is left of them is counted. Resident memory is that of the whole process.

Expected cost of ours: 20 ms of Python, 200 ms of imports, 7 ms of broker; 40 MB. The aims: ten times faster
than Kafka, 300 ms, 80 MB, nothing left.
"""

import compileall
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

# The peer is started the way the tests start it.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import barnabas
from barnabas.base.kernels import compiled_kernels
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.exchange import decode_response, encode_request
from broker_pair import JAVA_OPTIONS, create_topic, find_kafka, memory_mb
from broker_requests import VERSION, await_leader, one_record
from broker_rows import PEER, Answer
from report import Row, machine, parse_options, report
from support.kafka.broker import KafkaBroker
from support.kafka.tools import KafkaTools

TOPIC = "first"
ROUNDS, QUICK_ROUNDS = 15, 3
KAFKA_ROUNDS, QUICK_KAFKA_ROUNDS = 3, 1
BROKERS = 50
# Until then a process still takes memory that it keeps for later.
SETTLED_AFTER = 10
TIMES_FASTER_AIM = 10.0
SECONDS_MAX = 0.3
MEMORY_MAX_MB = 80.0

# What a test does, and nothing else: the fresh process must not import what a test would not.
CHILD = """
import sys, time
asked = time.monotonic()
import json, os, socket
from barnabas.testing import Broker

FRAME, BROKERS, SETTLED = bytes.fromhex(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

def take(sock, size):
    data = b""
    while len(data) < size:
        data += sock.recv(size - len(data))
    return data

def first_record(broker):
    with socket.create_connection(("127.0.0.1", broker.port)) as sock:
        sock.sendall(FRAME)
        return take(sock, int.from_bytes(take(sock, 4), "big")).hex(), time.monotonic()

def memory_mb():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

def left():
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

with Broker(topics=["first"]) as broker:
    answer, acknowledged = first_record(broker)
    mb = memory_mb()
again = time.monotonic()
with Broker(topics=["first"]) as broker:
    second, acknowledged_again = first_record(broker)
stopped = time.monotonic()
took = []
settled = None
for number in range(BROKERS):
    begun = time.monotonic()
    with Broker(topics=["first"]) as broker:
        first_record(broker)
    took.append(time.monotonic() - begun)
    # A thread that was joined is gone for the kernel a moment later.
    while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < begun + 1:
        time.sleep(0.001)
    if number + 1 == SETTLED:
        settled = (*left(), memory_mb())
print(json.dumps({
    "asked": asked, "acknowledged": acknowledged, "mb": mb, "answers": [answer, second],
    "second": acknowledged_again - again, "stop": stopped - acknowledged_again,
    "took": took, "settled": settled, "end": (*left(), memory_mb()),
}))
"""


def main() -> int:
    options = parse_options(__doc__)
    machine(options)
    plain = [name for name, compiled in compiled_kernels().items() if not compiled]
    print(f"broker:  {Path(barnabas.__file__).parent}")
    print(f"kernels: {'interpreted: ' + ', '.join(plain) if plain else 'all compiled'}")
    # As pip does at install: without it, every start would compile all of the source anew.
    compileall.compile_dir(Path(barnabas.__file__).parent, quiet=1)
    tools = find_kafka()
    ours = [run_ours() for _ in range(QUICK_ROUNDS if options.quick else ROUNDS)]
    many = run_ours(BROKERS)
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as name:
        rounds = QUICK_KAFKA_ROUNDS if options.quick else KAFKA_ROUNDS
        theirs = [run_theirs(tools, Path(name) / str(number)) for number in range(rounds)]
    found = answers(ours, many, theirs)
    report([one.shown() for one in found], replace(options, json=None))
    if options.json is not None:
        options.json.write_text(json.dumps([one.row.for_json() for one in found], indent=1) + "\n")
    is_clean = show_limits(ours, many)
    return 0 if is_clean and not any(one.is_missed for one in found) else 1


def run_ours(brokers: int = 0) -> dict[str, Any]:
    """One fresh process. `process` is the time from its start to the first acknowledged record."""
    key = ApiKey.PRODUCE
    frame = encode_request(one_record(TOPIC), VERSION, key=key, correlation_id=1, client_id="bench")
    begun = time.monotonic()
    words = [sys.executable, "-c", CHILD, frame.hex(), str(brokers), str(SETTLED_AFTER)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    for answer in found["answers"]:
        _, body = decode_response(bytes.fromhex(answer), VERSION, key=key)
        code = body.responses[0].partition_responses[0].error_code
        assert code == 0, f"the record was not taken: error {code}"
    found["process"] = found["acknowledged"] - begun
    found["first"] = found["acknowledged"] - found["asked"]
    return found


def run_theirs(tools: KafkaTools, directory: Path) -> dict[str, float]:
    directory.mkdir()
    kafka = KafkaBroker(tools, directory, java_options=JAVA_OPTIONS)
    kafka.format()
    begun = time.monotonic()
    kafka.start()
    try:
        create_topic(kafka, TOPIC)
        await_leader(kafka.address, TOPIC)
        first = time.monotonic() - begun
        mb = memory_mb(kafka.pid)["Rss"]
        kafka.stop()
    finally:
        kafka.kill()
    return {"first": first, "mb": mb, "took": time.monotonic() - begun}


def answers(ours: list[dict[str, Any]], many: dict[str, Any], theirs: list[dict[str, float]]) -> list[Answer]:
    first, mb, took = ([one[name] for one in theirs] for name in ("first", "mb", "took"))
    return [
        row("process start to first record", [one["process"] for one in ours], first, "s"),
        row("asking to first record, with imports", [one["first"] for one in ours], first, "s"),
        row("asking to first record, imports done", [one["second"] for one in ours], first, "s"),
        row(f"start, record and stop, one of {BROKERS}", many["took"], took, "s"),
        row("resident memory after it", [one["mb"] for one in ours], mb, "MB", aim=None),
    ]


def row(
    question: str, ours: list[float], theirs: list[float], unit: str, aim: float | None = TIMES_FASTER_AIM
) -> Answer:
    mine, others = median(ours), median(theirs)
    spread = 100 * (max(ours) / mine - 1)
    return Answer(Row(question, mine, others, PEER, unit, others / mine, spread), aim)


def show_limits(ours: list[dict[str, Any]], many: dict[str, Any]) -> bool:
    """The aims that are no ratios: how long, how much, and what is left. Whether all are met."""
    first, mb = median(one["first"] for one in ours), median(one["mb"] for one in ours)
    files, threads, growth = (end - then for end, then in zip(many["end"], many["settled"], strict=True))
    per_broker_kb = growth * 1000 / (BROKERS - SETTLED_AFTER)
    checks = [
        (f"first record after {first * 1000:.0f} ms", first <= SECONDS_MAX, f"{SECONDS_MAX * 1000:.0f} ms"),
        (f"{mb:.1f} MB resident", mb <= MEMORY_MAX_MB, f"{MEMORY_MAX_MB:.0f} MB"),
        (f"{files} descriptors and {threads} threads left", files <= 0 and threads <= 0, "none"),
    ]
    for text, is_met, aim in checks:
        print(f"limit:   {text}; at most {aim}: {'met' if is_met else 'missed'}")
    print(f"growth:  {per_broker_kb:.1f} kB a broker, from the {SETTLED_AFTER}th to the {BROKERS}th")
    return all(is_met for _, is_met, _ in checks)


if __name__ == "__main__":
    sys.exit(main())
