"""The programs of remote clients, built on first use into build/interop/.

What cannot be built raises CannotBuild with the first words of the tool, and no build goes on for ever.
Test processes that run side by side build one after the other; who comes later finds everything done.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.clients.remote import CannotBuild

BUILD_SECONDS_MAX = 600
_ROOT = Path(__file__).parents[3]
SOURCES = _ROOT / "tests/interop/clients"
BUILT = _ROOT / "build/interop"
_LETTERS_SHOWN = 300
# What it warns of is not the reason.
_NPM = ("npm", "--loglevel=error")


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """One process at a time; the bound on building bounds how long the others wait."""
    BUILT.mkdir(parents=True, exist_ok=True)
    with (BUILT / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def go_program(package: str) -> list[str]:
    """The command of a program of the Go module. Go itself knows what is up to date."""
    _need("go")
    with _alone("go"):
        program = BUILT / "go" / package
        _run(["go", "build", "-o", str(program), f"./{package}"], SOURCES / "go")
    return [str(program)]


def node_program(script: str, *, compiled: str | None = None) -> list[str]:
    """The command of a program of the Node package; `compiled` is a dependency that has a native part."""
    _need("node")
    _need("npm")
    with _alone("node"):
        home = BUILT / "node"
        _install(home)
        if compiled is not None:
            _compile(home, compiled)
        for source in (SOURCES / "node").glob("*.js"):
            _put(source, home)
    return ["node", str(home / script)]


def _put(source: Path, home: Path) -> None:
    """In one step, because a program of another test process may be reading it."""
    fresh = home / f"{source.name}.fresh"
    shutil.copy(source, fresh)
    fresh.replace(home / source.name)


def _install(home: Path) -> None:
    """The dependencies as the lock file has them, without what they would run: it may need a network of its
    own, and a client whose native part cannot be had is no reason to go without the others."""
    wanted = (SOURCES / "node/package-lock.json").read_bytes()
    done = home / "installed.json"
    if done.exists() and done.read_bytes() == wanted:
        return
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(SOURCES / "node" / name, home)
    _run([*_NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], home)
    done.write_bytes(wanted)


def _compile(home: Path, dependency: str) -> None:
    done = home / f"compiled-{dependency.replace('/', '-')}"
    if done.exists():
        return
    try:
        # It looks for a binary that was published, and else for the sources of what it needs.
        _run([*_NPM, "rebuild", dependency], home)
    except CannotBuild:
        # Without a way to either of them, with those libraries that the machine has.
        _run([*_NPM, "rebuild", dependency], home, CKJS_LINKING="dynamic")
    done.touch()


def _need(program: str) -> None:
    if shutil.which(program) is None:
        raise CannotBuild(f"{program} is not installed")


def _run(command: Sequence[str], directory: Path, **environment: str) -> None:
    shown = " ".join([word for word in command if not word.startswith("-")][:2])
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            env={**os.environ, "NO_COLOR": "1", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            encoding="utf-8",
            errors="replace",
            timeout=BUILD_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        raise CannotBuild(f"{shown} did not end within {BUILD_SECONDS_MAX} seconds") from None
    if done.returncode != 0:
        words = " ".join(done.stdout.split())
        raise CannotBuild(f"{shown} failed: {words[:_LETTERS_SHOWN]}")
