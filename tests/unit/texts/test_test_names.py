"""The name of a test is a statement that an engineer understands without reading the test."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
# Words that leave open which client, member or record a name is about.
RIDDLES = re.compile(
    r"_(?:what|who|whoever|nobody|somebody|everybody|anybody|told|tells|one_that|one_who|goes_on|go_on)"
    r"(?:_|$)"
)
LENGTH_MAX = 80


def names_of_tests(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name


def is_riddle(name: str) -> bool:
    return RIDDLES.search(name) is not None or len(name) > LENGTH_MAX


def test_names_of_tests_are_no_riddles() -> None:
    found = [
        f"{path.relative_to(TESTS)}: {name}"
        for path in sorted(TESTS.rglob("*.py"))
        for name in names_of_tests(path.read_text())
        if is_riddle(name)
    ]

    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "name",
    [
        "test_two_phases_who_only_seemed_to_be_dead_decides_nothing_more",
        "test_what_was_read_is_committed",
        "test_a_disk_that_fails_stops_nobody",
        "test_a_final_refusal_is_told",
        "test_" + "a" * LENGTH_MAX,
    ],
)
def test_a_riddle_is_found(name: str) -> None:
    assert is_riddle(name)


def test_a_plain_name_is_no_riddle() -> None:
    assert not is_riddle("test_a_commit_with_an_old_generation_writes_nothing")
