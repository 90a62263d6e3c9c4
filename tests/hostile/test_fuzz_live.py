"""Mutated requests over many connections: the broker serves others, does not grow, and its log stays intact.

`make fuzz` sends 10,000,000 of them, `make soak` 1,000,000. BARNABAS_FUZZ_REQUESTS sets the number,
BARNABAS_SEED selects the mutations. After a failure the last requests are in a file; the message explains how
to send them again.
"""

import os
import random
from pathlib import Path

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.server.handlers.table import APIS
from support.fuzz.requests import BATCH, RequestMutator, recorded_versions
from support.fuzz.run import SETTINGS, LiveFuzz
from support.fuzz.words import Words
from support.hostile.victim import SERVED_WITHIN_S, Victim
from support.process.tool_runs import run_tool
from support.scale import is_soak, scaled

REQUESTS = scaled("BARNABAS_FUZZ_REQUESTS", 30_000, 1_000_000)
# The broker's memory levels off after about so many: it was 77 MB after 300,000 requests, 106 MB after
# 1,000,000, and between 107 and 130 MB until 10,000,000.
WARM_UP_MAX = 1_000_000
SEED = int(os.environ.get("BARNABAS_SEED", random.Random().getrandbits(30) if is_soak() else 1))
# Requests for which Kafka, too, has no better code: isolation levels that do not exist, topics without a
# name, markers without a producer, epochs that are used up, static members that join with a given id.
UNKNOWN_ERROR_AS_KAFKA = {
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.JOIN_GROUP,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
}
# What dump-log says of damage. Gaps between offsets are not: compaction and deletion leave them.
DAMAGE = (
    "isvalid: false",
    "invalid bytes",
    "Mismatches",
    "Found timestamp",
    "Found out of order",
    "not found",
)
GARBAGE_RECORDS = "cannot decode the batch"
_FILES_AT_ONCE = 100


def damage_in(logs: Path) -> list[str]:
    """The damage that dump-log finds in all segments and indexes of a stopped broker.

    It does not check records: the broker does not decompress them, so they may be garbage.
    """
    patterns = ("*/*.log", "*/*.index", "*/*.timeindex")
    paths = [path for pattern in patterns for path in sorted(logs.glob(pattern))]
    paths = [path for path in paths if not path.parent.name.endswith("-delete")]
    assert paths
    found = []
    for start in range(0, len(paths), _FILES_AT_ONCE):
        found += _damage_in_files(paths[start : start + _FILES_AT_ONCE])
    return found


def _damage_in_files(paths: list[Path]) -> list[str]:
    done = run_tool("dump-log", "--files", ",".join(map(str, paths)))
    if done.code != 0 and len(paths) > 1:
        # The tool ends at the first file that it cannot read.
        return [line for path in paths for line in _damage_in_files([path])]
    lines = (done.out + done.err).splitlines()
    found = [line for line in lines if any(word in line for word in DAMAGE)]
    # To check a time index, the tool decompresses records.
    return found if done.code == 0 or GARBAGE_RECORDS in done.err else [*found, done.err]


@pytest.mark.long
@pytest.mark.scaled
def test_mutated_requests_do_not_harm_the_broker(tmp_path: Path) -> None:
    with (
        Victim(tmp_path, settings=SETTINGS) as victim,
        LiveFuzz(victim, seed=SEED, folder=tmp_path) as fuzz,
    ):
        fuzz.prepare()
        with victim.bystander() as bystander:
            fuzz.run(min(WARM_UP_MAX, REQUESTS // 2))
            warm_mb = victim.rss_mb
            fuzz.run(REQUESTS - fuzz.tally.sent)
        print(f"seed {SEED}: {fuzz.tally}; {warm_mb:.0f} MB before, {victim.rss_mb:.0f} MB after")
        fuzz.check_records()
        victim.memory_returns_to(warm_mb, within_s=60)
        fuzz.close()
        victim.check()

        assert damage_in(victim.logs) == []
        victim.start()
        fuzz.check_records()
        victim.check()
    assert bystander.error is None
    assert bystander.slowest_s < SERVED_WITHIN_S, f"seed {SEED}"
    assert fuzz.tally.answered > REQUESTS / 4, f"most connections were closed: {fuzz.tally}"
    unknown = {key: frame.hex() for key, frame in fuzz.tally.unknown_errors.items()}
    assert {key: unknown[key] for key in unknown if key[0] not in UNKNOWN_ERROR_AS_KAFKA} == {}


def test_mutations_begin_with_every_version_of_every_api() -> None:
    spoken = {(row.key, version) for row in APIS for version in row.versions}

    assert RequestMutator(1, Words()).covered == spoken
    # Recorded by support.wire.record_requests; the others are built.
    assert len(recorded_versions() & spoken) > len(spoken) / 2


def test_a_seed_reproduces_its_requests() -> None:
    first, second = RequestMutator(7, Words()), RequestMutator(7, Words())

    for number in range(20):
        batch = first.batch(number)

        assert batch == second.batch(number)
        assert len(batch.frames) == BATCH
    assert first.batch(20) != RequestMutator(8, Words()).batch(20)
