"""Runs the commands of a guide as a reader would, in a directory of its own.

A page is a story: `barnabas up` or `barnabas broker` starts a node, which serves the commands after it until
the page starts another one. Its port is a free one, and 127.0.0.1:9092 in later commands means that node.
"""

import os
import re
import select
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from types import TracebackType

import barnabas
from support.docs.pages import ROOT, blocks, commands
from support.process.ports import free_port
from support.process.processes import Ended, Running

COMMAND_S_MAX = 60
SOURCE = Path(barnabas.__file__).parents[1]
# Addresses that a reader's broker has.
ADDRESS = re.compile(r"(127\.0\.0\.1|localhost):9092")
SERVES = re.compile(r"barnabas (up|broker) ")
# Words of commands that need what a machine may not have, and the tests that run them where it is there.
RUN_ELSEWHERE = {
    "postgresql:": "tests/scenario/delivery/test_delivery_guide.py::test_postgresql_has_each_order_once",
    ".venv/bin/": "tests/scenario/spark/test_ways_to_run.py::test_the_job_of_the_guide_runs",
}
# What the pages call a node's data directory and its settings file.
FILES = ("data", "server.properties")
# A new group waits three seconds for more members, and here there are none.
FAST = ["--config", "group.initial.rebalance.delay.ms=0"]
# A number in the output is an example: another run prints another one.
NUMBER = re.compile(r"\d+")
# How a program ends that was stopped with Ctrl-C: by itself, or by Python.
INTERRUPTED = (0, 128 + signal.SIGINT, -signal.SIGINT)


class PageShell:
    """`directory` is where the commands run. Use it in a `with`, which stops the last node."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.address: str | None = None
        self.output = ""
        self._node: Running | None = None
        self._places: dict[str, str] = {}
        programs = directory / "bin"
        programs.mkdir()
        for name, module in {"barnabas": "-m barnabas.cli.main", "python": ""}.items():
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n')
            program.chmod(0o755)
        self._env = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(SOURCE),
            # What a program prints is seen at once.
            "PYTHONUNBUFFERED": "1",
        }

    def __enter__(self) -> "PageShell":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_node(check=error is None)

    def run_page(self, page: Path) -> None:
        """Run the commands of a page in their order. AssertionError if one does not do what the page says."""
        found = blocks(page)
        # Programs and files that the commands use, which the page may show before or after them.
        for block in found:
            if block.file:
                text = self._elsewhere(block.text) if block.language == "properties" else block.text
                (self.directory / block.file).write_text(text)
        before = ""
        for block in found:
            if block.language == "sh":
                for command in commands(block.text):
                    self._run(command, where=str(block))
            elif block.language == "text" and before == "sh":
                assert shape(block.text) in shape(self.output), f"{block}: the output was\n{self.output}"
            before = block.language

    def _run(self, command: str, *, where: str) -> None:
        if command.startswith("pip install "):
            check_requirement(command.removeprefix("pip install ").strip("'\""))
            return
        if assigned := re.fullmatch(r"(\w+)=(\S+)", command):
            self._env[assigned[1]] = self._here(assigned[2])
            return
        if any(word in command for word in RUN_ELSEWHERE):
            return
        if SERVES.match(f"{command} "):
            self._start_node(command)
            return
        command = self._here(command)
        if never_ends(command):
            ended = self._run_until_output(command)
            expected = INTERRUPTED
        else:
            ended = self._run_to_end(command)
            expected = (0,)
        assert ended.code in expected, f"{where}: {command}: exit code {ended.code}\n{ended.out}{ended.err}"
        self.output = ended.out

    def _here(self, text: str) -> str:
        """With the address of the node that is running."""
        if self.address is None:
            return text
        return ADDRESS.sub(self.address, text)

    def _elsewhere(self, text: str) -> str:
        """A properties file with free ports, and its data below our directory."""

        def port(match: re.Match[str]) -> str:
            return ":" + self._places.setdefault(match[1], str(free_port()))

        text = re.sub(r":(909\d)\b", port, text)
        return re.sub(r"=(/\S+)", lambda found: f"={self.directory}{found[1]}", text)

    def _start_node(self, command: str) -> None:
        self._stop_node(check=True)
        words = command.split()[1:]
        if words[0] == "up":
            words += FAST if "--port" in words else [*FAST, "--port", "0"]
        # The node runs where the tests run, so what it opens is named in full.
        words = [str(self.directory / word) if word in FILES else word for word in words]
        self._node = Running(self.directory / "node.err", *words)
        [self.address] = self._node.ready()
        self.output = f"ready: {self.address}\n"

    def _stop_node(self, *, check: bool) -> None:
        node, self._node, self.address = self._node, None, None
        if node is None:
            return
        ended = node.stop()
        assert not check or ended.code == 0, f"the node ended with {ended.code}\n{ended.err}"
        assert not check or ended.out == "", "nothing is printed after `ready:`"

    def _run_to_end(self, command: str) -> Ended:
        ended = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"],
            cwd=self.directory,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=COMMAND_S_MAX,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def _run_until_output(self, command: str) -> Ended:
        """Until it has printed a line, or ended; then Ctrl-C."""
        errors = self.directory / "command.err"
        with (
            errors.open("wb") as err,
            subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self.directory,
                env=self._env,
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
            ) as process,
        ):
            assert process.stdout is not None
            try:
                # Also readable when the command has ended without a line.
                has_come, _, _ = select.select([process.stdout], [], [], COMMAND_S_MAX)
                assert has_come, f"{command}: nothing was printed\n{errors.read_text()}"
                line = process.stdout.readline()
                process.send_signal(signal.SIGINT)
                rest, _ = process.communicate(timeout=COMMAND_S_MAX)
            except BaseException:
                process.kill()
                raise
        return Ended(process.returncode, line + rest, errors.read_text())


def never_ends(command: str) -> bool:
    """Whether a reader has to stop it."""
    if command.startswith("python "):
        return True
    return "console-consumer" in command and not {"--max-messages", "--timeout-ms"} & set(command.split())


def shape(text: str) -> str:
    return NUMBER.sub("0", text).strip()


def check_requirement(requirement: str) -> None:
    """What pip is asked for is ours, with extras that there are, or a package that the tests install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = re.fullmatch(r"([\w-]+)(?:\[([\w,-]+)\])?", requirement)
    assert found is not None, requirement
    extras = project["optional-dependencies"]
    if found[1] == project["name"]:
        unknown = set(filter(None, (found[2] or "").split(","))) - extras.keys()
        assert not unknown, f"there is no extra {', '.join(unknown)}"
    else:
        assert any(one.startswith(requirement) for one in extras["dev"]), f"{requirement} is not among dev"
