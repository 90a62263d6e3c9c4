"""What a process may use, by its binding and by the limits of its container."""

import os
from pathlib import Path

import pytest

from barnabas.base.processors import processors

BOUND_TO = len(os.sched_getaffinity(0))


def world(root: Path, group: str, limits: dict[str, str]) -> Path:
    """A system whose process is in a control group, with what some groups are limited to."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(f"4:memory:/elsewhere\n0::{group}\n")
    for path, limit in limits.items():
        directory = root / "sys/fs/cgroup" / path
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "cpu.max").write_text(limit)
    return root


def test_this_process_has_at_least_a_part_of_one() -> None:
    assert 0 < processors() <= BOUND_TO


def test_processors_counts_the_cpu_affinity_of_the_process() -> None:
    bound = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(bound)})

        assert processors() <= 1
    finally:
        os.sched_setaffinity(0, bound)


@pytest.mark.parametrize(
    ("group", "limits", "expected"),
    [
        ("/", {"": "50000 100000\n"}, 0.5),
        ("/a/b", {"a/b": "25000 100000\n"}, 0.25),
        ("/a/b", {"a": "75000 100000\n", "a/b": "max 100000\n"}, 0.75),
        ("/a/b", {"a": "50000 100000\n", "a/b": "75000 100000\n"}, 0.5),
        ("/a", {"b": "1000 100000\n"}, BOUND_TO),
        ("/a", {"a": "max 100000\n"}, BOUND_TO),
        ("/a", {"a": f"{10**9} 100000\n"}, BOUND_TO),
        ("/a", {"a": "nonsense"}, BOUND_TO),
        ("/a", {"a": "100000 0"}, BOUND_TO),
        ("/", {}, BOUND_TO),
    ],
)
def test_the_tightest_limit_of_its_groups_counts(
    tmp_path: Path, group: str, limits: dict[str, str], expected: float
) -> None:
    assert processors(world(tmp_path, group, limits)) == expected


def test_a_system_without_groups_has_no_limits(tmp_path: Path) -> None:
    assert processors(tmp_path) == BOUND_TO
