"""`barnabas demo`: run a Spark pipeline, kill it midway, and check that no event is lost or doubled.

This module holds the options, the checks of the dependencies and the data directory; demo_parts/story.py runs
the demo.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Final

from barnabas.cli.argument_parser import Misuse

EVENTS: Final = 20_000
EVENTS_MIN: Final = 100
EVENTS_MAX: Final = 1_000_000
SEED: Final = 7
MASTER: Final = "local[2]"
HOST: Final = "127.0.0.1"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--events",
        type=int,
        default=EVENTS,
        metavar="N",
        help=f"number of generated clicks (default: {EVENTS})",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=SEED,
        metavar="N",
        help=f"random seed; a seed always generates the same clicks (default: {SEED})",
    )
    parser.add_argument(
        "--master",
        default=MASTER,
        help=f"Spark master; its workers need this Python and access to HOST and DIR (default: {MASTER})",
    )
    parser.add_argument(
        "--host",
        default=HOST,
        help=f"address that the broker and the Spark driver listen on (default: {HOST})",
    )
    parser.add_argument(
        "--dir", metavar="DIR", help="data directory (default: a temporary one, removed on exit)"
    )


def run(options: argparse.Namespace) -> int:
    if not EVENTS_MIN <= options.events <= EVENTS_MAX:
        raise Misuse(f"--events {options.events}: must be from {EVENTS_MIN} to {EVENTS_MAX}")
    check_packages()
    java = java_home(os.environ)
    if options.dir is not None:
        return _run_story(options, _new_directory(options.dir), java)
    directory = Path(tempfile.mkdtemp(prefix="barnabas-demo-"))
    # Keep the directory of a failed run for inspection. Remove it after success and after Ctrl-C.
    has_failed = False
    try:
        code = _run_story(options, directory, java)
        has_failed = code != 0
        return code
    except Exception:
        has_failed = True
        raise
    finally:
        if not has_failed:
            shutil.rmtree(directory, ignore_errors=True)


def check_packages() -> None:
    missing = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
    if missing:
        raise Misuse(f"{' and '.join(missing)} not installed: pip install 'barnabas[spark]'")


def java_home(environment: Mapping[str, str]) -> str | None:
    """Return the home of Java if Spark would not find one by itself. Misuse if there is no Java."""
    from barnabas.base import java

    try:
        return java.java_home(environment)
    except java.NoJava as error:
        raise Misuse(str(error)) from None


def _run_story(options: argparse.Namespace, directory: Path, java_home: str | None) -> int:
    from barnabas.cli.demo_parts.story import Plan, Story

    # SIGTERM must unwind the stack: the `finally` blocks end the child processes.
    signal.signal(signal.SIGTERM, _exit)
    plan = Plan(
        events=options.events,
        seed=options.seed,
        master=options.master,
        host=options.host,
        directory=directory,
        is_kept=options.dir is not None,
        java_home=java_home,
    )
    return Story(plan).run()


def _new_directory(given: str) -> Path:
    directory = Path(given).resolve()
    if not given or "," in str(directory) or (directory.exists() and not _is_empty(directory)):
        raise Misuse(f"--dir {given}: must be a new or empty directory, without a comma in its path")
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _is_empty(directory: Path) -> bool:
    return directory.is_dir() and not any(directory.iterdir())


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
