"""The README's examples run as they stand there: its Python, its shell commands, and the names of its table.

A block of Python names its file. Of the shell blocks, those that call `barnabas` are one session: the command
`barnabas up` becomes a broker on a free port, and all others find it there.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.kit import SOURCE, pytest_session, python
from support.process.other_python import environment, path_without_barnabas
from support.process.processes import started
from support.spark.here import why_no_spark

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
PROGRAMS = dict(re.findall(r"^```python (\w+\.py)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL))
SHELL = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
COMMANDS = [line for block in SHELL if "barnabas " in block for line in block.splitlines()]
ADDRESS = "127.0.0.1:9092"
# What installs the package is tested by what sets up the environment of this test.
NOT_RUN = ("pip install ", "python3 -m venv ")
COMMAND_S_MAX = 60.0
SPARK_S_MAX = 200.0


def test_every_block_of_the_page_is_run() -> None:
    assert README.count("```python") == len(PROGRAMS) == 3
    assert README.count("\n```") == 2 * (len(PROGRAMS) + len(SHELL))


def test_the_program_sends_and_receives_a_record(tmp_path: Path) -> None:
    ended = python("-W", "error", "-c", PROGRAMS["orders.py"], cwd=tmp_path)

    assert (ended.code, ended.out, ended.err) == (0, "b'anna' b'a book'\n", "")


def test_the_test_passes(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(PROGRAMS["test_orders.py"])

    ended = pytest_session(tmp_path, "test_orders.py")

    assert ended.code == 0, ended.out + ended.err
    assert re.search(r"\b1 passed\b", ended.out)


@pytest.mark.skipif(why_no_spark() is not None, reason=why_no_spark() or "")
def test_spark_counts_the_clicks(tmp_path: Path) -> None:
    """Only the program itself tells Spark which Python to use."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAMS["clicks.py"]],
        cwd=tmp_path,
        env=environment(path_without_barnabas(tmp_path / "programs")),
        capture_output=True,
        text=True,
        timeout=SPARK_S_MAX,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    rows = re.findall(r"^\| *(\w+)\| *(\d+)\|$", ended.stdout, re.MULTILINE)
    assert rows == [("basket", "1"), ("home", "2")], ended.stdout


def test_the_shell_commands_work_in_their_order(tmp_path: Path) -> None:
    path = path_to_barnabas(tmp_path / "bin")
    printed = {}
    up = next(line for line in COMMANDS if line.startswith("barnabas up"))
    words = shlex.split(up, comments=True)[1:]
    with started(tmp_path / "up.err", *absolute(words, tmp_path), "--port", "0") as broker:
        [address] = broker.ready()
        for line in COMMANDS:
            if line == up or line.startswith(NOT_RUN):
                continue
            if line.startswith("kcat ") and shutil.which("kcat") is None:
                continue
            printed[line.split(" --")[0]] = run(line.replace(ADDRESS, address), tmp_path, path)
        ended = broker.stop()

    assert ended.code == 0, ended.err
    assert (tmp_path / "data" / "orders-0").is_dir()
    assert printed["barnabas version"].startswith("barnabas ")
    assert printed["barnabas console-consumer"] == "a book\n"
    assert {text for command, text in printed.items() if command.startswith("kcat")} <= {"a book\n"}


def path_to_barnabas(directory: Path) -> str:
    """A search path on which `barnabas` is the one under test."""
    directory.mkdir()
    program = directory / "barnabas"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m barnabas "$@"\n')
    program.chmod(0o755)
    return f"{directory}{os.pathsep}{os.environ['PATH']}"


def absolute(words: list[str], directory: Path) -> list[str]:
    """The data directory, which a reader has in the current one, in a directory of this test."""
    return [str(directory / word) if word == "data" else word for word in words]


def run(line: str, directory: Path, path: str) -> str:
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=directory,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=COMMAND_S_MAX,
        check=False,
    )
    assert done.returncode == 0, f"{line}: {done.stderr}"
    return done.stdout


def test_the_benchmarks_and_their_questions_exist() -> None:
    asked = re.findall(r"^\.venv/bin/python (bench/\w+\.py) --only ([\w,]+)", "\n".join(SHELL), re.MULTILINE)

    assert len(asked) == 4
    for script, questions in asked:
        known = set(re.findall(r'^    "(\w+)": \w+_rows,$', (ROOT / script).read_text(), re.MULTILINE))
        assert set(questions.split(",")) <= known, script


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert set(re.findall(r"`make (\w+)`", README)) <= targets
