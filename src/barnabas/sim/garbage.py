"""Run the cyclic garbage collector at deterministic times.

A collection has effects: a forgotten task reports its error, a forgotten stream closes its connection. Python
collects depending on all allocations since the start of the process, so a run would depend on earlier tests.
Here the run itself determines the times.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def steady_garbage() -> Iterator[None]:
    """Collect only when collect() is called, and only objects created inside."""
    was_enabled = gc.isenabled()
    gc.disable()
    # Existing objects are irrelevant for this run, and would slow down every collection.
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()


def collect() -> None:
    gc.collect()
