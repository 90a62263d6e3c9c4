"""Objects come from malloc() while a process grows, and pymalloc can free and resize them all the same."""

import os
import platform
import subprocess
import sys

import pytest

needs_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can return memory")

# Each object that stays lies in an arena of its own.
SURVIVORS = """
import sys
from barnabas.base.pymalloc import ObjectAllocator
from barnabas.base.trimming import malloc_trim, resident_bytes

trim, before = malloc_trim(), resident_bytes()
allocator = ObjectAllocator()
assert allocator.can_switch
if sys.argv[1] == "malloc":
    allocator.use_malloc()
burst = [bytes(200) for _ in range(200_000)]
allocator.use_pymalloc()
full = resident_bytes()
survivors = burst[::2_000]
del burst
trim()
print(full - before, resident_bytes() - before)
"""

MIXED = """
import gc, random
from barnabas.base.pymalloc import ObjectAllocator

allocator, rng, rows = ObjectAllocator(), random.Random(0), {}
for step in range(20_000):
    if step % 100 == 0:
        allocator.use_pymalloc() if allocator.uses_malloc else allocator.use_malloc()
    # Lists and byte arrays grow and shrink, so their memory is resized in either state.
    row = rows.setdefault(rng.randrange(500), ([], bytearray(), {}))
    row[0].extend([step] * rng.randrange(20))
    row[1].extend(b"%d" % step * rng.randrange(20))
    row[2][str(step)] = (step, float(step), "s" * rng.randrange(600))
    if len(row[0]) > 100:
        del row[0][10:], row[1][7:]
        row[2].clear()
    if step % 7 == 0:
        rows.pop(rng.randrange(500), None)
    if step % 1_000 == 0:
        gc.collect()
for items, text, table in rows.values():
    assert all(0 <= item < 20_000 for item in items)
    assert not text or text[-1:].isdigit()
    assert all(int(key) == value[0] == value[1] and set(value[2]) <= {"s"} for key, value in table.items())
rows.clear()
print(allocator.can_switch)
"""

HOOKED = """
import sys
if "trace" in sys.argv:
    import tracemalloc
    tracemalloc.start()
from barnabas.base.pymalloc import ObjectAllocator
allocator = ObjectAllocator()
allocator.use_malloc()
burst = [[str(number)] for number in range(10_000)]
assert not allocator.uses_malloc
allocator.use_pymalloc()
del burst
print(allocator.can_switch)
"""


def run(story: str, *arguments: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", story, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


@needs_glibc
def test_a_few_live_objects_do_not_hold_freed_memory() -> None:
    grown, left = map(int, run(SURVIVORS, "malloc"))
    assert left < grown / 4

    # What it is good for: the same objects, from pymalloc.
    grown, left = map(int, run(SURVIVORS, "pymalloc"))
    assert left > grown / 2


def test_objects_may_be_freed_and_resized_after_the_next_switch() -> None:
    assert run(MIXED) == ["True"]


def test_nothing_is_switched_under_debug_hooks() -> None:
    assert run(HOOKED, PYTHONMALLOC="debug") == ["False"]


def test_nothing_is_switched_under_tracemalloc() -> None:
    assert run(HOOKED, "trace") == ["False"]
