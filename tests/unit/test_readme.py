"""The README's examples run as they are printed."""

import re
from pathlib import Path
from textwrap import dedent

import pytest

README = Path(__file__).parents[2] / "README.md"
EXAMPLES = [dedent(code) for code in re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)]


@pytest.mark.parametrize("code", EXAMPLES, ids=range(len(EXAMPLES)))
def test_example_runs(code: str) -> None:
    exec(compile(code, "README.md", "exec"), {})


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
