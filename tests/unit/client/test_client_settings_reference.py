"""docs/reference/client-settings.md is generated from the declarations.

PYTHONPATH=src python tests/unit/client/test_client_settings_reference.py        # writes the page again
"""

from pathlib import Path

from barnabas.base.settings import format_value, settings_of
from barnabas.client.consumer.settings import ConsumerSettings
from barnabas.client.producer.settings import ProducerSettings
from barnabas.client.settings import REFUSED, AdminSettings, ClientSettings

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "client-settings.md"
OPENING = """# Settings of clients

Made from the declarations in the code; a test keeps it current. Names and defaults are those of Kafka's own
clients, except for a few that come from librdkafka and say so. Pass a setting as `{"linger.ms": 5}` or as
`linger_ms=5`. An unknown name is rejected with the nearest one.
"""
KINDS = {"Producer": ProducerSettings, "Consumer": ConsumerSettings, "Admin": AdminSettings}


def rows(cls: type[ClientSettings], without: type[ClientSettings] | None) -> list[str]:
    """Settings that are not declared alike by every client."""
    common = {} if without is None else settings_of(without)
    lines = ["| name | type | default | may be | what it is for |", "|---|---|---|---|---|"]
    for name, one in settings_of(cls).items():
        if common.get(name) == one:
            continue
        shown = format_value(one.default)
        default = "none" if shown is None else f"`{shown}`" if shown else "empty"
        rule = "" if one.rule is None else one.rule.text
        lines.append(f"| `{name}` | {one.type.label} | {default} | {rule} | {one.doc} |")
    return lines


def page() -> str:
    lines = [OPENING, "## Every client", "", *rows(ClientSettings, None), ""]
    for title, cls in KINDS.items():
        lines += [f"## {title}", "", *rows(cls, ClientSettings), ""]
    lines += [
        "## Refused",
        "",
        "Settings that Kafka's clients have and this one does not, with the reason that the client gives.",
        "",
        "| name | why |",
        "|---|---|",
    ]
    refused = dict(REFUSED)
    for cls in KINDS.values():
        refused |= cls.REFUSED
    lines += [
        f"| `{name}{'*' if name.endswith('.') else ''}` | {why} |" for name, why in sorted(refused.items())
    ]
    return "\n".join(lines) + "\n"


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), f"write it again: PYTHONPATH=src python {__file__}"


def test_every_setting_has_a_row() -> None:
    named = {line.split("`")[1] for line in page().splitlines() if line.startswith("| `")}

    for cls in KINDS.values():
        assert settings_of(cls).keys() <= named


if __name__ == "__main__":
    PAGE.write_text(page())
