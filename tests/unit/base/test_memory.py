"""What memory a process may use, by the machine and by the limits of its container."""

from pathlib import Path

import pytest

from barnabas.base.memory import UNKNOWN_BYTES, memory_bytes

MACHINE = 8 << 30


def world(root: Path, group: str, limits: dict[str, str]) -> Path:
    """A system whose process is in a control group, with what some groups are limited to."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemTotal:       {MACHINE >> 10} kB\nMemFree:  5 kB\n")
    (root / "proc/self/cgroup").write_text(f"4:memory:/elsewhere\n0::{group}\n")
    for path, limit in limits.items():
        directory = root / "sys/fs/cgroup" / path
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "memory.max").write_text(limit)
    return root


def test_this_machine_has_some() -> None:
    assert 64 << 20 < memory_bytes() < 1 << 50


@pytest.mark.parametrize(
    ("group", "limits", "expected"),
    [
        ("/", {}, MACHINE),
        ("/", {"": "1000000000\n"}, 1_000_000_000),
        ("/a/b", {"a": "500000000\n", "a/b": "max\n"}, 500_000_000),
        ("/a/b", {"a": "500000000\n", "a/b": "400000000\n"}, 400_000_000),
        ("/a", {"b": "1000\n"}, MACHINE),
        ("/a", {"a": f"{1 << 60}\n"}, MACHINE),
        ("/a", {"a": "nonsense"}, MACHINE),
    ],
)
def test_the_tightest_limit_counts(tmp_path: Path, group: str, limits: dict[str, str], expected: int) -> None:
    assert memory_bytes(world(tmp_path, group, limits)) == expected


def test_a_system_that_does_not_say_has_a_usual_size(tmp_path: Path) -> None:
    assert memory_bytes(tmp_path) == UNKNOWN_BYTES
