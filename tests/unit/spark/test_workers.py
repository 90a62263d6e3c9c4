"""What a worker does once. In processes of their own: it cannot be undone."""

import ctypes
import subprocess
import sys

import pytest

SETTLED = "from barnabas.spark.workers import settle_in; settle_in(); settle_in()\n"
# As often as large answers come and go, in the thread that reads them: how many pages are asked for anew?
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


def printed(program: str) -> int:
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return int(ended.stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_the_memory_of_an_answer_is_used_again() -> None:
    assert printed(SETTLED + FAULTS) < printed(FAULTS) / 3


def test_what_was_imported_is_left_out_when_garbage_is_looked_for() -> None:
    frozen = "import gc; print(gc.get_freeze_count())"

    assert printed("import pyarrow\n" + frozen) == 0
    assert printed("import pyarrow\n" + SETTLED + frozen) > 10_000
