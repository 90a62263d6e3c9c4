"""Clients in processes of their own: what a test is told when such a process answers, refuses, dies or hangs.

The programs here are a few lines of Python; those of real clients are in tests/interop/clients.
"""

import sys
from collections.abc import Callable, Iterator, Sequence

import pytest

from barnabas.protocol.error_codes import ErrorCode
from support.clients.client import Refused, Setting, opened
from support.clients.remote import CannotBuild, Remote
from support.clients.remote_process import RemoteProcess

IMPATIENT_S = 0.2
# Before a program answers Python has to start.
PATIENT_S = 30.0
# Answers every request from a table, and ends well at the end of its input.
PROGRAM = """
import json, sys
answers = {answers!r}
for line in sys.stdin:
    print(json.dumps(answers[json.loads(line)["op"]]), flush=True)
"""
Start = Callable[..., RemoteProcess]


def python(code: str) -> Sequence[str]:
    return [sys.executable, "-c", code]


def answering(**answers: object) -> Remote:
    return Remote(
        "answering", lambda: python(PROGRAM.format(answers={"open_admin": {"ok": None}, **answers}))
    )


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[RemoteProcess] = []

    def start(code: str, seconds_max: float = PATIENT_S) -> RemoteProcess:
        started.append(RemoteProcess("program", python(code), answer_seconds_max=seconds_max))
        return started[-1]

    yield start
    for process in started:
        process.kill()


def test_an_answer_is_the_output_of_the_program() -> None:
    settings = {"retention.ms": {"value": None, "source": "DEFAULT_CONFIG"}}
    remote = answering(topic_settings={"ok": settings}, watermarks={"ok": [2, 10]}, version={"ok": "1.2"})

    with opened(remote.admin("nowhere:1")) as admin:
        found = admin.topic_settings("t")
        watermarks = admin.watermarks("t", 0)

    assert found == {"retention.ms": Setting(value=None, source="DEFAULT_CONFIG")}
    assert watermarks == (2, 10)
    assert remote.version() == "1.2"


def test_a_refusal_has_the_code_of_the_broker_or_none() -> None:
    remote = answering(
        delete_topic={"error": {"code": 3, "text": "no such topic"}},
        topics={"error": {"code": None, "text": "too slow"}},
    )

    with opened(remote.admin("nowhere:1")) as admin:
        with pytest.raises(Refused, match="no such topic") as unknown:
            admin.delete_topic("t")
        with pytest.raises(Refused, match="too slow") as slow:
            admin.topics()

    assert unknown.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert slow.value.code is None


def test_a_program_that_dies_is_shown_with_its_last_words(start: Start) -> None:
    process = start("import sys; sys.stdin.readline(); sys.exit('out of luck')")

    with pytest.raises(AssertionError, match="program is gone") as told:
        process.ask({"op": "version"})

    assert "out of luck" in str(told.value)


def test_a_program_that_hangs_is_given_up(start: Start) -> None:
    code = "import sys; sys.stdin.readline(); print('{', end='', flush=True); sys.stdin.read()"
    process = start(code, IMPATIENT_S)

    with pytest.raises(AssertionError, match=r"gave no answer within 0\.2 seconds; its process still runs"):
        process.ask({"op": "version"})


def test_a_program_that_does_not_read_is_given_up(start: Start) -> None:
    process = start("import time; time.sleep(60)", IMPATIENT_S)

    with pytest.raises(AssertionError, match="does not read its input"):
        process.ask({"op": "send", "value": "x" * 10_000_000})


@pytest.mark.parametrize("answer", ["[]", "{}", '{"ok": 1, "error": 2}'])
def test_output_that_is_no_answer_is_rejected(answer: str, start: Start) -> None:
    process = start(f"import sys; sys.stdin.readline(); print({answer!r}, flush=True); sys.stdin.read()")

    with pytest.raises(AssertionError, match="program answered"):
        process.ask({"op": "version"})


def test_a_program_that_does_not_end_well_is_a_failure(start: Start) -> None:
    process = start("import sys; sys.stdin.read(); sys.exit('cannot let go')")

    with pytest.raises(AssertionError, match="did not end well") as told:
        process.close()

    assert "cannot let go" in str(told.value)


def test_a_client_that_cannot_be_built_says_why_and_is_built_only_once() -> None:
    tried: list[str] = []

    def build() -> Sequence[str]:
        tried.append("again")
        raise CannotBuild("cobol is not installed")

    remote = Remote("cobol", build)

    assert [remote.missing(), remote.missing()] == ["cobol is not installed"] * 2
    assert tried == ["again"]
