"""Scenarios as text: comments, commands, a line of dashes, and what they answer.

A file is a list of blocks separated by blank lines. BARNABAS_REWRITE=1 writes the answers anew; read
the diff before believing it.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

DASHES = "----"


def check_scenario(path: Path, run: Callable[[list[str]], Iterable[str]]) -> None:
    """Run every block's commands in order and compare with its answers."""
    blocks = path.read_text().rstrip("\n").split("\n\n")
    answered = [_answer(block, run) for block in blocks]
    if os.environ.get("BARNABAS_REWRITE") == "1":
        path.write_text("\n\n".join(answered) + "\n")
    for block, answer in zip(blocks, answered, strict=True):
        assert answer == block, f"{path.name}: the answer is\n\n{answer}\n\nnot\n\n{block}"


def _answer(block: str, run: Callable[[list[str]], Iterable[str]]) -> str:
    above, _, _ = block.partition(f"\n{DASHES}")
    commands = [line for line in above.splitlines() if not line.startswith("#")]
    return "\n".join([above, DASHES, *run(commands)])
