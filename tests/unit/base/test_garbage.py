"""The collector is left on, for what comes after the start."""

import subprocess
import sys

STORY = """
import gc, weakref
from barnabas.base.memory import YOUNG_MAX, freeze_existing_objects

class Ring:
    def __init__(self):
        self.me = self

old = [Ring() for _ in range(1000)]
freeze_existing_objects()
assert gc.isenabled() and gc.get_threshold()[0] == YOUNG_MAX
assert gc.get_freeze_count() > 1000
ring = weakref.ref(Ring())
kept = [Ring() for _ in range(YOUNG_MAX + 1000)]
assert ring() is None, "a cycle that came later is found"
"""


STAYING = """
import gc, weakref
from barnabas.base.memory import YOUNG_MAX, YOUNG_TIMES, collect_all, freeze_existing_objects

class Ring:
    def __init__(self):
        self.me = self

freeze_existing_objects()
rings = [Ring() for _ in range(50)]
watched = [weakref.ref(ring) for ring in rings]
kept, most = [], 0
for _ in range(20):
    kept += [[] for _ in range(YOUNG_MAX)]
    most = max(most, len(gc.get_objects()))
assert len(gc.get_objects()) <= most <= (YOUNG_TIMES + 2) * YOUNG_MAX, most
del rings
assert all(ring() for ring in watched)
collect_all()
assert not any(ring() for ring in watched)
"""


def test_surviving_objects_are_not_traversed_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STAYING], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 0, done.stderr


def test_later_objects_are_still_collected() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STORY], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 0, done.stderr
