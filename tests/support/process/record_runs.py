"""Run a tool that reads or writes records in this process: bytes in, bytes out.

support.process.tool_runs does the same for tools that print text and read nothing.
"""

import io
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, NamedTuple

from barnabas.cli.main import main


class Run(NamedTuple):
    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.decode().splitlines()

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The output of --json."""
        return [json.loads(line) for line in self.lines]


class RecordTools:
    """Runs tools against a cluster: each call adds --bootstrap-server."""

    def __init__(self, address: str) -> None:
        self.address = address

    def __call__(self, tool: str, *words: str, stdin: bytes = b"") -> Run:
        return run(tool, "--bootstrap-server", self.address, *words, stdin=stdin)

    def produce(self, topic: str, lines: bytes, *words: str) -> Run:
        return self("console-producer", "--topic", topic, "--timeout", "0", *words, stdin=lines)

    def consume(self, topic: str, count: int, *words: str) -> Run:
        """Consume this many records from the beginning; waits if there are fewer."""
        limit = ("--from-beginning", "--max-messages", str(count), "--timeout-ms", "10000")
        return self("console-consumer", "--topic", topic, *limit, *words)


def run(*words: str, stdin: bytes = b"") -> Run:
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True), io.StringIO()
    with _standard_input(stdin), redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
    out.flush()
    return Run(code, out.buffer.getvalue(), err.getvalue())  # type: ignore[attr-defined]


@contextmanager
def _standard_input(data: bytes) -> Iterator[None]:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        before = sys.stdin
        sys.stdin = io.TextIOWrapper(file)
        try:
            yield
        finally:
            sys.stdin.detach()
            sys.stdin = before
