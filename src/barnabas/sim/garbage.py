"""The cycle collector, kept from choosing its own moments.

Collecting has effects: a forgotten task reports its error, a forgotten stream closes its connection. When
Python collects depends on all that the process has allocated since its start, so a run would depend on the
tests before it. Here it collects at moments that the run itself determines.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def steady_garbage() -> Iterator[None]:
    """Collect only when collect() is called, and only what came into being in here."""
    was_enabled = gc.isenabled()
    gc.disable()
    # What was there before is of no interest to this run, and would make every collection slow.
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()


def collect() -> None:
    gc.collect()
