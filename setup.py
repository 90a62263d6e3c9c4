"""Compile the kernels with mypyc when that is possible; the rest of the build is in pyproject.toml.

Every extension is optional: without a C compiler the same modules are installed as plain Python and
`barnabas version` says so. BARNABAS_COMPILE=0 asks for that on purpose.

The kernels with the classes and codecs of frequent messages are generated first, from the declarations
(`src/barnabas/protocol/tuned`).

mypyc turns the kernels into one library and a small extension per module that loads it. The library's C is
compiled in a few units, as many at a time as there are cores. Extensions whose C has not changed since an
earlier build come from a cache: `build/kernels`, or the directory that BARNABAS_KERNEL_CACHE names.
"""

import hashlib
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SRC = Path(__file__).parent / "src"
MESSAGES = SRC / "barnabas/protocol/messages"
TUNED = SRC / "barnabas/protocol/generated"
GENERATED = Path("build/mypyc")
CACHE = Path(os.environ.get("BARNABAS_KERNEL_CACHE", "build/kernels"))
# A build has one file per kernel, and most builds share all but the library's.
CACHE_FILES_MAX = 400
# The result of these does not depend on the kernels, and mypyc takes seconds. pip runs two before it builds.
METADATA_COMMANDS = {"egg_info", "dist_info", "sdist"}
# The build environment lacks libraries that modules imported by the kernels use.
MYPY_OPTIONS = ["--ignore-missing-imports", "--no-warn-unused-ignores"]
# Packages whose C makes one unit, largest first. Functions of one unit can be inlined into each other.
UNITS = (
    ("server",),
    ("coordinators",),
    ("storage", "replication"),
    ("protocol", "records", "client", "base"),
)


def kernels() -> list[Extension]:
    if os.environ.get("BARNABAS_COMPILE") == "0" or METADATA_COMMANDS & set(sys.argv):
        return []
    # Run by path: importing the package would need its dependencies, which the build does not have.
    names: tuple[str, ...] = runpy.run_path(str(SRC / "barnabas/base/kernels.py"))["KERNELS"]
    paths = [str(SRC / (name.replace(".", "/") + ".py")) for name in names]
    try:
        generate_tuned_messages()
        extensions = translate(paths)
    except SystemExit:
        # mypyc exits like this when types do not check, for example with a later release of it. A slow
        # install is better than none, and tests that expect compiled kernels refuse to run on it.
        print("barnabas: the kernels do not compile here; installing them as plain Python", file=sys.stderr)
        return []
    finally:
        for stub in MESSAGES.glob("*.pyi"):
            stub.unlink()
    throw_with_one_argument(GENERATED / "misc_ops.c")
    library = next(one for one in extensions if len(one.sources) > 1)
    library.sources = [str(unit) for unit in write_units([Path(one) for one in library.sources])]
    for extension in extensions:
        extension.optional = True
        if sys.platform != "win32":
            # Warnings about generated code help nobody, and finding them doubles the compile time.
            extension.extra_compile_args.append("-Wno-all")
            # Only our own modules call these functions. Hidden symbols let them call each other directly.
            extension.extra_compile_args.append("-fvisibility=hidden")
    return extensions


def generate_tuned_messages() -> None:
    """Write the classes and codecs of tuned messages, and stubs that show mypyc the classes."""
    shutil.rmtree(TUNED, ignore_errors=True)
    # In a process of its own: what is imported from the package must not be seen by the rest of the build.
    path = os.pathsep.join([str(SRC), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "barnabas.protocol.tuned.generate", str(SRC)]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=True)


def translate(paths: list[str]) -> list[Extension]:
    """Translate modules to C. SystemExit if that is not possible."""
    from mypyc.build import mypycify

    # Files of an earlier set of kernels would be compiled, too.
    shutil.rmtree(GENERATED, ignore_errors=True)
    print(f"barnabas: translating {len(paths)} modules to C", file=sys.stderr, flush=True)
    extensions: list[Extension] = mypycify(
        [*MYPY_OPTIONS, *paths],
        opt_level="2",
        debug_level="0",
        multi_file=True,
        target_dir=str(GENERATED),
        group_name="barnabas",
    )
    return extensions


def throw_with_one_argument(runtime: Path) -> None:
    """Change how mypyc's runtime throws into what a compiled coroutine awaits.

    mypyc 2.4 passes throw() three arguments, which Python 3.12 deprecates. In a process that turns warnings
    into errors, as many test suites do, every compiled coroutine that is cancelled would then fail with a
    DeprecationWarning, and the broker with it. A later mypyc may not have that call any more.
    """
    source = runtime.read_text()
    three = "PyObject_CallFunctionObjArgs(_m, type, value, traceback, NULL)"
    runtime.write_text(source.replace(three, "PyObject_CallOneArg(_m, value)"))


def write_units(sources: list[Path]) -> list[Path]:
    """Group the library's C files into units that include them; what is left is mypyc's runtime."""
    left = list(sources)
    units = []
    for packages in UNITS:
        prefixes = tuple(f"__native_barnabas___{package}___" for package in packages)
        members = [source for source in left if source.name.startswith(prefixes)]
        left = [source for source in left if source not in members]
        units.append((packages[0], members))
    units.append(("runtime", left))
    written = []
    for name, members in units:
        unit = GENERATED / f"unit_{name}.c"
        unit.write_text("".join(f'#include "{source.relative_to(GENERATED)}"\n' for source in members))
        written.append(unit)
    return written


class BuildKernels(build_ext):
    """Compile the units of the library in parallel; take unchanged extensions from the cache."""

    def build_extensions(self) -> None:
        if self.extensions:
            print("barnabas: compiling the C of the kernels", file=sys.stderr, flush=True)
            self.toolchain = toolchain(self.compiler)
        super().build_extensions()
        prune_cache()

    def build_extension(self, ext: Extension) -> None:
        built = Path(self.get_ext_fullpath(ext.name))
        cached = CACHE / f"{self.digest(ext)}-{built.name}"
        if cached.exists():
            built.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(cached, built)
            os.utime(cached)
            return
        if len(ext.sources) > 1:
            ext.extra_objects = self.compile_in_parallel(ext)
            ext.sources = []
        super().build_extension(ext)
        CACHE.mkdir(parents=True, exist_ok=True)
        # Renamed into place, so that a build that is interrupted leaves no half of a file.
        partial = cached.with_name(f"{cached.name}.{os.getpid()}")
        shutil.copyfile(built, partial)
        partial.replace(cached)

    def compile_in_parallel(self, ext: Extension) -> list[str]:
        def compile_unit(source: str) -> list[str]:
            objects: list[str] = self.compiler.compile(
                [source],
                output_dir=self.build_temp,
                include_dirs=ext.include_dirs,
                extra_postargs=ext.extra_compile_args,
                depends=ext.depends,
            )
            return objects

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            return [name for objects in pool.map(compile_unit, ext.sources) for name in objects]

    def digest(self, ext: Extension) -> str:
        """Return a digest of everything that the compiled extension depends on."""
        facts = hashlib.sha256(self.toolchain)
        facts.update(repr((ext.name, ext.extra_compile_args)).encode())
        for path in inputs(ext):
            facts.update(path.read_bytes())
        return facts.hexdigest()[:32]


def inputs(ext: Extension) -> Iterator[Path]:
    """Yield the C that an extension is made of: a unit includes all that mypyc has written."""
    if len(ext.sources) == 1:
        yield Path(ext.sources[0])
        return
    for pattern in ("**/*.c", "**/*.h"):
        # Of `barnabas/` are the small extensions of the modules.
        yield from sorted(path for path in GENERATED.glob(pattern) if path.parts[2] != "barnabas")


def toolchain(compiler: object) -> bytes:
    """Return what the machine code depends on besides its C."""
    command = list(getattr(compiler, "compiler_so", []))
    try:
        release = subprocess.run([command[0], "--version"], capture_output=True, check=True).stdout
    except (IndexError, OSError, subprocess.CalledProcessError):
        release = b""
    return repr((sys.version, command, release, version("mypy"), version("setuptools"))).encode()


def prune_cache() -> None:
    if not CACHE.is_dir():
        return
    files = sorted(CACHE.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[CACHE_FILES_MAX:]:
        file.unlink(missing_ok=True)


setup(
    ext_modules=kernels(),
    cmdclass={"build_ext": BuildKernels},
    options={"build_ext": {"parallel": True}},
)
