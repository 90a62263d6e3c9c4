"""Output of dump-log for damaged files: the recorded one of Kafka's tool, and ours.

With BARNABAS_WRITE_ANSWERS=1 `make interop` records the output of Kafka's tool again.
"""

import json
import lzma
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.cli.main import main
from support.kafka.sample import FIXTURES
from support.kafka.tools import KafkaTools
from support.log.damaged_files import Case
from support.log.damaged_indexes import index_cases
from support.log.damaged_logs import log_cases

ANSWERS = FIXTURES / "dump-log-damaged.jsonl.xz"
WRITE = bool(os.environ.get("BARNABAS_WRITE_ANSWERS"))

OUR_FAILURE = "barnabas dump-log: "
KAFKAS_FAILURE = 'Exception in thread "main" '
# Reasons of parse errors are not compared: Kafka's is often just "null".
_REASON = re.compile(r"(due to|schema validation): (?!Snapshot contained).*")

CASES = {case.name: case for case in (*log_cases(), *index_cases())}


class Answer(NamedTuple):
    """Stdout, stderr and exit code. A failure is an exception in Kafka's tool and one line in ours."""

    stdout: str
    notices: list[str]
    failure: str | None
    code: int

    def comparable(self) -> tuple[str, list[str], bool, int]:
        notices = [_REASON.sub(r"\1", line) for line in self.notices]
        return _REASON.sub(r"\1", self.stdout), notices, self.failure is not None, self.code


@cache
def written_answers() -> dict[str, Answer]:
    with lzma.open(ANSWERS, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return {row["case"]: Answer(row["stdout"], row["stderr"], row["exception"], row["exit"]) for row in rows}


def write_answers(answers: dict[str, Answer]) -> None:
    with lzma.open(ANSWERS, "wt", encoding="utf-8", preset=9) as out:
        for name, (stdout, notices, failure, code) in answers.items():
            row = {"case": name, "arguments": CASES[name].arguments, "stdout": stdout}
            row |= {"stderr": notices, "exception": failure, "exit": code}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def kafkas_answer(tools: KafkaTools, case: Case, directory: Path) -> Answer:
    done: subprocess.CompletedProcess[str] = tools.dump_log(*case.write(directory))
    notices, _, exception = done.stderr.partition(KAFKAS_FAILURE)
    failure = exception.splitlines()[0] if exception else None
    return _answer(done.stdout, notices.splitlines(), failure, done.returncode, directory)


def our_answer(case: Case, directory: Path, capsys: pytest.CaptureFixture[str]) -> Answer:
    code = main(["dump-log", *case.write(directory)])
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    failures = [line for line in lines if line.startswith(OUR_FAILURE)]
    assert len(failures) <= 1, failures
    notices = [line for line in lines if line not in failures]
    return _answer(printed.out, notices, failures[0] if failures else None, code, directory)


def _answer(stdout: str, notices: list[str], failure: str | None, code: int, directory: Path) -> Answer:
    where = str(directory)
    return Answer(
        stdout.replace(where, "DIR"),
        [line.replace(where, "DIR") for line in notices],
        None if failure is None else failure.replace(where, "DIR"),
        code,
    )
