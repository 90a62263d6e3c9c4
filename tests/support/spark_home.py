"""A home of Spark's in which its Python is not packed.

Spark starts processes of Python with pyspark.zip in front of everything, and Python keeps nothing of what it
compiles from a zip: each of them takes 1.3 s longer than it would with the very same files as pip has laid
them out. A test starts several.
"""

import os
from importlib.util import find_spec
from pathlib import Path


def lay_out(home: Path) -> None:
    """Links to what pip has installed. Nothing if that has no Spark, or somebody has chosen a home."""
    spec = find_spec("pyspark")
    if "SPARK_HOME" in os.environ or spec is None or spec.origin is None:
        return
    installed = Path(spec.origin).parent
    for one in installed.iterdir():
        if one.is_dir() and one.name != "python":
            (home / one.name).symlink_to(one)
    packed = home / "python" / "lib"
    packed.mkdir(parents=True)
    for one in (installed / "python" / "lib").glob("*.zip"):
        # A place to import from may be a directory, whatever it is called. It holds this package only:
        # it comes before PYTHONPATH, and all of site-packages there would hide the sources under test.
        package = one.name.removesuffix(".zip").partition("-")[0]
        (packed / one.name).mkdir()
        (packed / one.name / package).symlink_to(installed.parent / package)
    os.environ["SPARK_HOME"] = str(home)
