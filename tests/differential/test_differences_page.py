"""docs/reference/differences.md is what the table says. BARNABAS_WRITE_DOCS=1 writes it anew."""

import os
from pathlib import Path

from differential.broker.differences import page
from differential.broker.families import every_story

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "differences.md"


def test_the_page_of_differences_is_current() -> None:
    text = page(len(list(every_story())))
    if os.environ.get("BARNABAS_WRITE_DOCS"):
        PAGE.write_text(text)

    assert PAGE.read_text() == text
