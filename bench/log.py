"""How fast is the log: appending, reading, recovering, compacting, and having many of them?

Everything happens on the disk that holds the temporary directory (TMPDIR says where). Each question has a
file of its own that says what is measured, against what, and what it should cost:
log_append.py, log_read.py, log_recovery.py, log_compaction.py, log_many.py.
"""

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from barnabas.base.kernels import compiled_kernels
from log_append import append_rows
from log_compaction import compaction_rows
from log_many import many_rows
from log_read import read_rows
from log_recovery import recovery_rows
from log_turns import Aimed
from report import Options, machine, parse_options, report

QUESTIONS: tuple[Callable[[Path, Options], Iterator[Aimed]], ...] = (
    append_rows,
    read_rows,
    recovery_rows,
    compaction_rows,
    many_rows,
)


def file_system(path: Path) -> str:
    """What kind of file system a path is on, as far as the kernel says."""
    mounts = Path("/proc/self/mounts")
    best = ("", "unknown")
    for line in mounts.read_text().splitlines() if mounts.exists() else []:
        _, point, kind, *_ = line.split()
        if path.is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1]


def main() -> None:
    options = parse_options(__doc__)
    machine(options)
    plain = [name for name, compiled in compiled_kernels().items() if not compiled]
    print(f"kernels: {'interpreted: ' + ', '.join(plain) if plain else 'all compiled'}")
    found: list[Aimed] = []
    for question in QUESTIONS:
        # One at a time, so that what one leaves in the page cache is gone before the next.
        with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as name:
            directory = Path(name)
            if not found:
                print(f"disk:    {directory.parent}, {file_system(directory)}")
                print("sizes:   medians, also of the rounds' ratios; p99 is the worst round of ours")
            found += question(directory, options)
    report([one.shown() for one in found], replace(options, json=None))
    if options.json is not None:
        options.json.write_text(json.dumps([one.row.for_json() for one in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
