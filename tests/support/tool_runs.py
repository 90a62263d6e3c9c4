"""A tool run in this process, as `barnabas TOOL ...` would be: what it prints and how it ends."""

import io
import re
from contextlib import redirect_stderr, redirect_stdout

from barnabas.cli.main import main
from support.processes import Ended

_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}")
# On a machine that is busy with something else a broker may take longer to answer than a tool cares to be
# silent about. That says nothing of the tool: its own test looks at it.
_PATIENCE = "waiting for a broker to respond ...\n"


class Tools:
    """Tools with a cluster: each call runs one, with --bootstrap-server after its name."""

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
    """The ids of topics and clusters are made by chance."""
    return _TOPIC_ID.sub("ID", text)
