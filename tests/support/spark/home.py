"""A SPARK_HOME with an unpacked pyspark, so that Python processes start faster.

Spark puts pyspark.zip first on the path of Python processes. Python does not cache bytecode compiled from a
zip, so each process takes 1.3 s longer to start than with the installed files. A test starts several.
"""

import os
from importlib.util import find_spec
from pathlib import Path


def lay_out(home: Path) -> None:
    """Create it with links to the installed files. No effect without Spark or if SPARK_HOME is set."""
    spec = find_spec("pyspark")
    if "SPARK_HOME" in os.environ or spec is None or spec.origin is None:
        return
    installed = Path(spec.origin).parent
    for one in installed.iterdir():
        if one.is_dir() and one.name != "python":
            (home / one.name).symlink_to(one)
    for one in (installed / "python" / "lib").glob("*.zip"):
        # A place to import from may be a directory, whatever it is called. It has one package, as the zip
        # has: all others, and ours among them, are found where users have them.
        packed = home / "python" / "lib" / one.name
        packed.mkdir(parents=True)
        package = one.name.removesuffix(".zip").partition("-")[0]
        (packed / package).symlink_to(installed.parent / package)
    os.environ["SPARK_HOME"] = str(home)
