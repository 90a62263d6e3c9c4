"""Memory settings of a worker, tested in separate processes because they cannot be undone."""

import ctypes
import subprocess
import sys

import pytest

SETTLED = "from barnabas.spark.workers import settle_in; settle_in(); settle_in()\n"
# Counts page faults while large responses are allocated and freed in a reading thread.
FAULTS = """
import resource, threading

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def read():
    before = faults()
    for _ in range(10):
        answers = [bytearray(b"x") * (14 << 20) for _ in range(3)]
        del answers
    print(faults() - before)

thread = threading.Thread(target=read)
thread.start()
thread.join()
"""


# The same while other responses stay allocated, which together exceed the heap of a thread's own arena.
KEPT = "kept = [bytearray(b'x') * (14 << 20) for _ in range(2)]\n    before ="
FAULTS_BESIDE = FAULTS.replace("before =", KEPT)


def printed(program: str) -> int:
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return int(ended.stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
@pytest.mark.parametrize("program", [FAULTS, FAULTS_BESIDE])
def test_the_memory_of_a_response_is_reused(program: str) -> None:
    assert printed(SETTLED + program) < printed(program) / 3


def test_imported_modules_are_frozen() -> None:
    frozen = "import gc; print(gc.get_freeze_count())"

    # Python 3.12 starts with some hundreds of frozen objects.
    assert printed("import pyarrow\n" + frozen) < 1_000
    assert printed("import pyarrow\n" + SETTLED + frozen) > 10_000


def test_imports_of_the_first_task_are_frozen_and_nothing_later() -> None:
    one = "from barnabas.spark.workers import settle_in; settle_in()\n"
    makes = "kept{n} = [[] for _ in range(50_000)]; settle_in()\n"
    frozen = "import gc; print(gc.get_freeze_count())"

    after_one = printed(one + frozen)
    after_two = printed(one + makes.format(n=1) + frozen)
    after_three = printed(one + makes.format(n=1) + makes.format(n=2) + frozen)

    assert 50_000 <= after_two - after_one < 60_000
    assert after_three - after_two < 10_000
