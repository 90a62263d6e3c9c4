"""Memory of a spike goes back to the system, and memory in use is not looked at all the time."""

import platform
import subprocess
import sys

import pytest

from barnabas.base.trimming import EXCESS_BYTES, PAUSE_S_MAX, PAUSE_S_MIN, Trimming

SMALL = 40 << 20

STORY = """
import asyncio, barnabas.base.trimming as trimming
from barnabas.base.memory import keep_freed_memory
from barnabas.base.executor import ThreadExecutor

async def main():
    keep_freed_memory()
    one, executor = trimming.Trimming(pause_s_min=0.05), ThreadExecutor(1)
    before = trimming.resident_bytes()
    task = asyncio.create_task(one.run(executor))
    blocks = [bytes(100_000) for _ in range(2000)]
    kept = blocks[::100]
    await asyncio.sleep(0.5)
    del blocks
    spike = trimming.resident_bytes() - before
    for _ in range(200):
        await asyncio.sleep(0.05)
        if trimming.resident_bytes() - before < spike / 10:
            break
    print(before, spike, trimming.resident_bytes() - before)
    task.cancel()
    executor.close()

asyncio.run(main())
"""

OF_ANY_OBJECTS = """
from barnabas.base.pymalloc import ObjectAllocator
from barnabas.base.trimming import EXCESS_BYTES, GROWN_BLOCKS, GROWN_BYTES, Trimming

size = 40 << 20
objects = ObjectAllocator()
trimming = Trimming(lambda: size, objects=objects)

def is_growing():
    trimming.settle()
    return objects.uses_malloc

# Objects that come and go, and memory that is not of objects.
for _ in range(5):
    gone = [str(number) for number in range(GROWN_BLOCKS - 5_000)]
    del gone
    trimming.watch()
size += EXCESS_BYTES
trimming.watch()
assert not is_growing()

# Objects that stay. The collector does not look at these.
kept = [[str(number) for number in range(1_000, GROWN_BLOCKS + 5_000)]]
trimming.watch()
assert objects.uses_malloc
for _ in range(5):
    size += GROWN_BYTES
    assert is_growing()
# Objects that are freed and allocated again are no growth.
size -= EXCESS_BYTES
assert not is_growing()
size += EXCESS_BYTES
trimming.watch()
assert not is_growing()

# The same number of objects again.
kept.append([str(number) for number in range(1_000, GROWN_BLOCKS + 5_000)])
trimming.watch()
assert objects.uses_malloc
assert not is_growing()
"""

OF_CONTAINERS = """
import asyncio, gc
from barnabas.base.executor import ThreadExecutor
from barnabas.base.memory import YOUNG_MAX, freeze_existing_objects
from barnabas.base.pymalloc import ObjectAllocator
from barnabas.base.trimming import EXCESS_BYTES, Trimming

async def main():
    freeze_existing_objects()
    sizes = [40 << 20]
    objects, executor = ObjectAllocator(), ThreadExecutor(1)
    trimming = Trimming(lambda: sizes[-1], objects=objects, pause_s_min=0.01)
    task = asyncio.create_task(trimming.run(executor))
    # It begins a collection of its own.
    sizes.append(sizes[0] + EXCESS_BYTES)
    await asyncio.sleep(0.1)
    assert not objects.uses_malloc

    # Within one turn of the loop.
    kept = [[] for _ in range(YOUNG_MAX + 5_000)]
    assert objects.uses_malloc
    for _ in range(500):
        await asyncio.sleep(0.01)
        if not objects.uses_malloc:
            break
    assert not objects.uses_malloc

    kept.append([[] for _ in range(YOUNG_MAX + 5_000)])
    assert objects.uses_malloc
    task.cancel()
    await asyncio.wait([task])
    assert not objects.uses_malloc
    executor.close()

asyncio.run(main())
"""


class Process:
    """A process of a size that the test sets."""

    def __init__(self) -> None:
        self.size = SMALL

    def __call__(self) -> int:
        return self.size


def test_a_process_of_its_usual_size_is_left_alone() -> None:
    process = Process()
    trimming = Trimming(process)

    process.size += EXCESS_BYTES - 1

    assert not trimming.is_due()
    assert trimming.pause_s == PAUSE_S_MIN


def test_a_spike_that_grows_is_looked_at_often() -> None:
    process = Process()
    trimming = Trimming(process)

    for _ in range(10):
        process.size += EXCESS_BYTES
        assert trimming.is_due()
        assert trimming.pause_s == PAUSE_S_MIN


def test_memory_that_stays_in_use_is_looked_at_less_and_less() -> None:
    process = Process()
    trimming = Trimming(process)
    process.size += 100 * EXCESS_BYTES

    pauses = []
    for _ in range(10):
        assert trimming.is_due()
        pauses.append(trimming.pause_s)

    assert pauses == sorted(pauses)
    assert pauses[0] == PAUSE_S_MIN
    assert pauses[-1] == PAUSE_S_MAX
    # When it is free, the next spike is noticed at once.
    process.size = SMALL
    assert not trimming.is_due()
    assert trimming.pause_s == PAUSE_S_MIN


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can return memory")
def test_the_memory_of_a_spike_is_returned() -> None:
    ran = subprocess.run([sys.executable, "-c", STORY], capture_output=True, text=True, check=True)
    _, spike, left = (int(number) for number in ran.stdout.split())

    assert spike > 100 << 20
    assert left < spike / 10


@pytest.mark.parametrize("story", [OF_ANY_OBJECTS, OF_CONTAINERS])
def test_objects_come_from_malloc_while_the_process_grows(story: str) -> None:
    ran = subprocess.run([sys.executable, "-c", story], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
