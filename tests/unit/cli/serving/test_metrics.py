"""Figures of this process from the operating system."""

import os
import resource
import time

from barnabas.cli.serving.metrics import ProcessReader


def test_the_figures_are_those_of_this_process() -> None:
    before = time.time()

    read = ProcessReader()
    first = read()
    with open(os.devnull):
        second = read()

    # The kernel updates both figures at different times, so they may differ slightly.
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert 1_000_000 < first.resident_bytes < 2 * most
    assert 0 < first.cpu_seconds <= time.process_time() + 1
    assert before <= first.started_at_seconds <= time.time()
    assert second.open_files == first.open_files + 1
    assert first.open_files_max == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
