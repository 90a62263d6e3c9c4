"""Python on the pages of guides and concepts that have no test of their own: each page runs as one program.

The other pages say what their blocks need, and their tests run every block: see OWN_TESTS.
"""

from pathlib import Path

import pytest

from support.docs.pages import ROOT, blocks, example_pages, name_of

# Pages whose blocks are programs with an argument, files of tests, or need Spark.
OWN_TESTS = {
    "docs/guides/client.md": "tests/scenario/guide/test_client_guide.py",
    "docs/guides/delivery.md": "tests/scenario/delivery/test_delivery_guide.py",
    "docs/guides/spark.md": "tests/scenario/spark/test_spark_guide.py",
    "docs/guides/testing.md": "tests/scenario/guide/test_testing_guide.py",
}
PAGES = [
    page
    for page in example_pages()
    if name_of(page) not in OWN_TESTS and any(one.language == "python" for one in blocks(page))
]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_python_of_a_page_runs(page: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(page):
        if block.language == "python":
            exec(compile(block.text, str(block), "exec"), names)


def test_pages_with_their_own_tests_exist() -> None:
    assert [path for pair in OWN_TESTS.items() for path in pair if not (ROOT / path).exists()] == []
