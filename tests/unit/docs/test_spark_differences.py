"""The guide's table of differences from spark-sql-kafka is the list that tests hold the source to.

BARNABAS_WRITE_DOCS=1 writes the table anew.
"""

import os
from itertools import takewhile

from differential.spark.differences import DIFFERENCES, table
from support.docs.pages import DOCS, ROOT

GUIDE = DOCS / "guides" / "spark.md"


def written() -> tuple[str, str, str]:
    """What is before the table, the table, and what is after it."""
    before, head, rest = GUIDE.read_text().partition(table(()))
    assert head, "the guide has no table of differences"
    lines = rest.splitlines(keepends=True)
    rows = list(takewhile(lambda line: line.startswith("|"), lines))
    return before, head + "".join(rows), "".join(lines[len(rows) :])


def test_the_guide_has_every_difference_and_no_other() -> None:
    before, found, after = written()
    if os.environ.get("BARNABAS_WRITE_DOCS"):
        GUIDE.write_text(before + table(DIFFERENCES) + after)
        before, found, after = written()

    assert found == table(DIFFERENCES)


def test_the_tests_that_show_differences_exist() -> None:
    for one in DIFFERENCES:
        if one.shown_by:
            path, _, name = one.shown_by.partition("::")
            assert f"def {name}(" in (ROOT / "tests" / path).read_text(), one.shown_by
