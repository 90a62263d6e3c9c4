"""Freed memory is kept: seen by how many pages a process is given."""

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import resource
from barnabas.base.memory import keep_freed_memory
{call}
for turn in range(60):
    if turn == 10:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [b"x" * 1_000_000 for _ in range(5)]
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages_taken(call: str) -> int:
    """How many pages fifty rounds of five megabytes cost after the first ten."""
    script = SCRIPT.format(call=call)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return int(ran.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has the setting")
def test_blocks_of_a_megabyte_are_paid_for_once() -> None:
    given_back, kept = pages_taken(""), pages_taken("assert keep_freed_memory()")

    # A ratio, because the size of a page is the machine's.
    assert kept < given_back / 10, (kept, given_back)
