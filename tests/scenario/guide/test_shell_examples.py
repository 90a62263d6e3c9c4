"""Every command of the guides runs, in the order of its page, against a broker that the page starts.

A page that gains a block for a shell has it run here: nothing lists them.
"""

from pathlib import Path

import pytest

from support.doc_pages import blocks, example_pages, name_of
from support.doc_shell import PageShell

PAGES = [page for page in example_pages() if any(one.language == "sh" for one in blocks(page))]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_commands_of_a_page_work(page: Path, tmp_path: Path) -> None:
    with PageShell(tmp_path) as shell:
        shell.run_page(page)
