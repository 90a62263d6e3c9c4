"""A PATH whose `python3` does not have Barnabas, as of a program that is started without its environment."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import barnabas

SOURCE = Path(barnabas.__file__).parents[1]
# The same interpreter without its packages (-S). What Spark adds to PYTHONPATH stays; Barnabas does not.
_PROGRAM = """\
#!/bin/sh
PYTHONPATH=$(printf %s "$PYTHONPATH" | tr : '\\n' | grep -vxF {source} | paste -sd : -)
export PYTHONPATH
exec {python} -S "$@"
"""


def path_without_barnabas(directory: Path) -> str:
    """The PATH, with a directory of two programs before it: `python` and `python3`."""
    directory.mkdir()
    for name in ("python", "python3"):
        program = directory / name
        program.write_text(
            _PROGRAM.format(source=shlex.quote(str(SOURCE)), python=shlex.quote(sys.executable))
        )
        program.chmod(0o755)
    path = f"{directory}{os.pathsep}{os.environ['PATH']}"
    tried = subprocess.run(
        ["python3", "-c", "import barnabas"], env=environment(path), capture_output=True, check=False
    )
    assert b"No module named 'barnabas'" in tried.stderr, tried
    return path


def environment(path: str) -> dict[str, str]:
    """That of this process with another PATH, and as if nobody had chosen a Python or a home for Spark."""
    told = ("PYSPARK_", "SPARK_HOME")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(told)}
    places = [os.path.abspath(place) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    return {**kept, "PATH": path, "PYTHONPATH": os.pathsep.join(places)}
