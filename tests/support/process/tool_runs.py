"""Run a tool in this process like `barnabas TOOL ...`, and capture output and exit code."""

import io
import re
from contextlib import redirect_stderr, redirect_stdout

from barnabas.cli.main import main
from support.process.processes import Ended

_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}")
# On a busy machine a broker may respond so late that the tool prints this hint. It is removed here; the hint
# has its own test.
_PATIENCE = "waiting for a broker to respond ...\n"


class Tools:
    """Runs tools against a cluster: each call adds --bootstrap-server."""

    def __init__(self, address: str) -> None:
        self.address = address

    def __call__(self, tool: str, *words: str) -> Ended:
        return run_tool(tool, "--bootstrap-server", self.address, *words)


def run_tool(*words: str) -> Ended:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Ended(code, out.getvalue(), err.getvalue().removeprefix(_PATIENCE))


def without_ids(text: str) -> str:
    """Mask the random ids of topics and clusters."""
    return _TOPIC_ID.sub("ID", text)
