"""Every command of the guides runs, in the order of its page, against a broker that the page starts.

A page that gains a block for a shell has it run here: nothing lists them.
"""

from pathlib import Path

import pytest

from support.docs.pages import ROOT, blocks, example_pages, name_of
from support.docs.shell import RUN_ELSEWHERE, PageShell

PAGES = [page for page in example_pages() if any(one.language == "sh" for one in blocks(page))]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_commands_of_a_page_work(page: Path, tmp_path: Path) -> None:
    with PageShell(tmp_path) as shell:
        shell.run_page(page)


def test_commands_that_are_not_run_here_have_a_test() -> None:
    for place in RUN_ELSEWHERE.values():
        file, _, name = place.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(), place
