"""No example of the guides and concepts can escape the tests that run them.

tests/scenario/guide/test_shell_examples.py runs every `sh` block of a page, test_python_examples.py every
`python` block or names the test that does. This module checks that there is nothing else on the pages.
"""

from itertools import pairwise
from pathlib import Path

import pytest

from support.docs.pages import DOCS, LANGUAGES, blocks, example_pages, indented_blocks, name_of

PAGES = example_pages()
# Text that does not follow commands, and so is not their output: the page's own test compares it.
OWN_TEXT = {"docs/guides/testing.md"}


def test_there_are_pages() -> None:
    assert {page.parent for page in PAGES} == {DOCS / "guides", DOCS / "concepts"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_has_a_language_that_is_run(page: Path) -> None:
    unknown = [f"{block}: {block.language!r}" for block in blocks(page) if block.language not in LANGUAGES]

    assert unknown == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_has_a_fence(page: Path) -> None:
    assert indented_blocks(page) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_text_is_the_output_of_commands(page: Path) -> None:
    if name_of(page) in OWN_TEXT:
        return
    found = blocks(page)
    before = {second: first.language for first, second in pairwise(found)}

    assert [str(one) for one in found if one.language == "text" and before.get(one) != "sh"] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_that_is_shown_has_a_name(page: Path) -> None:
    shown = [one for one in blocks(page) if one.language in ("ini", "properties", "json")]

    assert [str(one) for one in shown if not one.file] == []
