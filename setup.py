"""Compile the kernels with mypyc when that is possible; the rest of the build is in pyproject.toml.

Every extension is optional: without a C compiler the same modules are installed as plain Python and
`barnabas version` says so. BARNABAS_COMPILE=0 asks for that on purpose.
"""

import os
import runpy
import sys
from pathlib import Path

from setuptools import Extension, setup

SRC = Path(__file__).parent / "src"
# What pip asks before it builds: the answer does not depend on the kernels, and mypyc takes its time.
ASKED_FIRST = {"egg_info", "dist_info"}
# The kernels use none of the libraries that are missing while this is built, but import modules that do.
BUILD_HAS_NOT_ALL = ["--ignore-missing-imports", "--no-warn-unused-ignores"]


def kernels() -> list[Extension]:
    if os.environ.get("BARNABAS_COMPILE") == "0" or ASKED_FIRST & set(sys.argv):
        return []
    from mypyc.build import mypycify

    # Read by path: importing the package would need its dependencies, which the build does not have.
    names: tuple[str, ...] = runpy.run_path(str(SRC / "barnabas/base/kernels.py"))["KERNELS"]
    paths = [str(SRC / (name.replace(".", "/") + ".py")) for name in names]
    try:
        extensions: list[Extension] = mypycify(
            [*BUILD_HAS_NOT_ALL, *paths], opt_level="2", debug_level="0", group_name="barnabas"
        )
    except SystemExit:
        # mypyc leaves like this when types do not check: with some later release of it, perhaps. A slower
        # install is better than none, and the tests refuse to run on it when they are told to be compiled.
        print("barnabas: the kernels do not compile here and are installed as plain Python", file=sys.stderr)
        return []
    for extension in extensions:
        extension.optional = True
        if sys.platform != "win32":
            # What a compiler thinks of generated code is of no use to anybody, and takes it as long again.
            extension.extra_compile_args.append("-Wno-all")
            # Nobody else calls our functions: so they call each other directly, and small ones vanish.
            extension.extra_compile_args.append("-fvisibility=hidden")
    return extensions


# There is one large file of C, and a small one for each module: those are compiled beside it.
setup(ext_modules=kernels(), options={"build_ext": {"parallel": True}})
