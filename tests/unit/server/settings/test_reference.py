"""docs/reference/settings.md is made from the declarations.

PYTHONPATH=src python tests/unit/server/settings/test_reference.py        # writes the page again
"""

from pathlib import Path

from barnabas.server.settings.catalog import BROKER
from barnabas.server.settings.reference import settings_page
from barnabas.storage.topic_settings import SETTINGS as TOPIC

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "settings.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == settings_page(), f"write it again: PYTHONPATH=src python {__file__}"


def test_every_setting_has_a_row_of_six_columns() -> None:
    rows = [line for line in settings_page().splitlines() if line.startswith("| `")]

    assert {row.split("`")[1] for row in rows} >= BROKER.keys() | TOPIC.keys()
    assert {row.count("|") for row in rows} == {7}


if __name__ == "__main__":
    PAGE.write_text(settings_page())
