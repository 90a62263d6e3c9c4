"""What does an idle member cost in memory, and what does a committed offset?

Of ours, the resident set of the whole process before and after, divided by how many there are. Of Kafka, the
live objects of the heap after a full collection (`jcmd PID GC.class_histogram`), before and after: what it
needs at the very least, without what the collector keeps free. So the comparison leans to Kafka's side.
Connections are closed before it is measured, because a connection is no member.

Expected cost of ours: a member is some small objects and strings, about a kilobyte; a committed offset is its
key and the bytes of its value, about 35 bytes.
"""

import subprocess
import time
from collections.abc import Callable, Iterator

from barnabas.protocol.api_keys import ApiKey
from broker_pair import Broker, Pair, create_topic, memory_mb
from broker_requests import await_leader
from broker_rows import Answer, less_is_better
from groups_classic import idle_classic_members
from groups_commits import VERSION, commit_of, refuse_errors
from groups_consumer import consumer_rebalance
from groups_load import await_coordinator, frame_of, in_loop
from groups_pair import SESSION_MS_MAX, Scene, note
from support.process.our_broker import OurBroker
from support.wire.client import WireClient

AIM = 1.5
TOPIC = "bench-memory"
GROUP_SIZE = 50
GROUPS = 200
QUICK_GROUPS = 10
OFFSET_GROUPS = 200
QUICK_OFFSET_GROUPS = 20
PARTITIONS = 1000
# What the first ones bring along - code that is loaded, buffers that stay - is no member.
WARM_UP_GROUPS = 10
JCMD_TIMEOUT_S = 60
# Time for what is freed late.
REST_S = 2.0
assert GROUP_SIZE < PARTITIONS


def memory_rows(scene: Scene) -> Iterator[Answer]:
    groups = scene.sized(GROUPS, QUICK_GROUPS)
    with scene.running("memory") as pair:
        prepare(pair)
        note("memory: resident set of ours; live heap after a full collection of Kafka's")
        members = groups * GROUP_SIZE
        yield row(pair, "memory of an idle classic member", classic_group, groups, members)
        yield row(pair, "memory of an idle consumer member", consumer_group, groups, members)
        offset_groups = scene.sized(OFFSET_GROUPS, QUICK_OFFSET_GROUPS)
        yield row(
            pair, "memory of a committed offset", offsets_of_group, offset_groups, offset_groups * PARTITIONS
        )


def prepare(pair: Pair) -> None:
    for broker in (pair.ours, pair.theirs):
        for name, partitions in ((TOPIC, PARTITIONS), (f"{TOPIC}-members", GROUP_SIZE)):
            create_topic(broker, name, partitions)
            await_leader(broker.address, name, partitions - 1)


def row(pair: Pair, question: str, make: Callable[[Broker, str], None], groups: int, count: int) -> Answer:
    costs = []
    for broker in (pair.ours, pair.theirs):
        for number in range(WARM_UP_GROUPS):
            make(broker, f"{make.__name__}-warm-{number}")
        before = memory_used(broker)
        for number in range(groups):
            make(broker, f"{make.__name__}-{number}")
        after = memory_used(broker)
        costs.append((after - before) / count)
        note(f"{question}: {before / 1e6:.1f} MB before and {after / 1e6:.1f} MB after {count}")
    return less_is_better(question, costs[:1], costs[1:], "bytes", AIM)


def classic_group(broker: Broker, name: str) -> None:
    await_coordinator(broker.address, name)
    in_loop(idle_classic_members(broker.address, name, GROUP_SIZE, SESSION_MS_MAX))


def consumer_group(broker: Broker, name: str) -> None:
    await_coordinator(broker.address, name)
    in_loop(consumer_rebalance(broker.address, name, GROUP_SIZE, f"{TOPIC}-members", stay=True))


def offsets_of_group(broker: Broker, name: str) -> None:
    await_coordinator(broker.address, name)
    with WireClient(broker.address) as client:
        frame = frame_of(commit_of(name, TOPIC, range(PARTITIONS), 1_000_000), VERSION, ApiKey.OFFSET_COMMIT)
        client.send_raw(frame)
        refuse_errors(client.read_frame())


def memory_used(broker: Broker) -> float:
    """Bytes; see above for what is measured of whom."""
    time.sleep(REST_S)
    if isinstance(broker, OurBroker):
        return memory_mb(broker.pid)["Rss"] * 1e6
    told = subprocess.run(
        ["jcmd", str(broker.pid), "GC.class_histogram"],
        capture_output=True,
        text=True,
        timeout=JCMD_TIMEOUT_S,
        check=True,
    )
    # Its last line is the sum: Total, objects, bytes.
    word, _, size = told.stdout.strip().splitlines()[-1].split()
    assert word == "Total", told.stdout[-300:]
    return float(size)
