"""dump-log on arbitrary bytes exits with 0, or with 1 and an error line, and never with a traceback."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.cli.main import main
from support.fuzz.mutations import attempts
from support.kafka.sample import sample_files

pytestmark = pytest.mark.kernel

EXAMPLES = attempts(6000) // 100
NAME = "00000000000000000000"
LOGS = [
    f"{topic}/{NAME}.log" for topic in ("txn-0", "codecs-0", "__consumer_offsets-0", "__cluster_metadata-0")
]
FLAGS = (
    "--print-data-log",
    "--offsets-decoder",
    "--transaction-log-decoder",
    "--cluster-metadata-decoder",
    "--share-group-state-decoder",
    "--verify-index-only",
    "--index-sanity-check",
)
DAMAGE = st.lists(st.tuples(st.integers(0, 2999), st.integers(1, 255)), max_size=4)


@given(
    name=st.sampled_from(LOGS),
    damage=DAMAGE,
    beside=st.binary(max_size=100),
    length=st.integers(0, 3000),
    flag=st.sampled_from(FLAGS),
)
@settings(max_examples=EXAMPLES)
def test_arbitrary_bytes_cause_no_traceback(
    name: str, damage: list[tuple[int, int]], beside: bytes, length: int, flag: str
) -> None:
    log = bytearray(sample_files()[name][:length])
    for at, change in damage:
        if at < len(log):
            log[at] ^= change
    with TemporaryDirectory() as directory:
        contents = {
            "log": bytes(log),
            "index": beside,
            "timeindex": beside,
            "txnindex": beside,
            "snapshot": beside,
        }
        for kind, data in contents.items():
            path = Path(directory, f"{NAME}.{kind}")
            path.write_bytes(data)
        for kind in contents:
            assert main(["dump-log", flag, "--files", f"{directory}/{NAME}.{kind}"]) in (0, 1)
