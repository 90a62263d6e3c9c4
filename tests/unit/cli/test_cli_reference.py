"""docs/reference/cli.md is generated from the option parsers of the commands.

PYTHONPATH=src python tests/unit/cli/test_cli_reference.py        # writes the page again
"""

import argparse
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from barnabas.cli.main import COMMANDS
from barnabas.cli.option_parser import Parser

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"
OPENING = """# Commands

Generated from the option parsers; a test keeps this page current. `barnabas COMMAND --help` prints the same.
[The tools](../guides/tools.md) has an example of each command.
"""


def parser_of(name: str) -> Any:
    module = import_module(f"barnabas.cli.{name.replace('-', '_')}")
    make: Any = getattr(module, "Parser", argparse.ArgumentParser)
    parser = make(prog=f"barnabas {name}", description=COMMANDS[name])
    module.arguments(parser)
    return parser


def rows(parser: Any) -> list[tuple[str, str]]:
    """Return heading and help text of every visible option."""
    if isinstance(parser, Parser):
        shown = {one.names: one for one in parser._options.values() if not one.hidden}
        return [
            (
                ", ".join(f"--{name}" for name in one.names) + (f" <{one.value}>" if one.value else ""),
                one.text,
            )
            for one in sorted(shown.values())
        ]
    return [
        (_heading(action), action.help or "")
        for action in parser._actions
        if action.help is not argparse.SUPPRESS and not isinstance(action, argparse._SubParsersAction)
    ]


def _heading(action: argparse.Action) -> str:
    takes_none = action.nargs == 0
    value = action.metavar or action.dest.upper()
    assert isinstance(value, str), "no option has a tuple of them"
    if not action.option_strings:
        return value
    return ", ".join(action.option_strings) + ("" if takes_none else f" {value}")


def sections(name: str) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield title, description and options of a command and its subcommands."""
    parser = parser_of(name)
    about = parser.about if isinstance(parser, Parser) else COMMANDS[name]
    yield f"## {name}", about, rows(parser)
    for action in getattr(parser, "_actions", ()):
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for word, below in action.choices.items():
                yield f"### {name} {word}", helps[word], rows(below)


def page() -> str:
    lines = [OPENING]
    for name in COMMANDS:
        for title, about, found in sections(name):
            lines += [title, "", about, "", "| option | |", "| --- | --- |"]
            lines += [f"| `{_cell(option)}` | {_cell(text % {})} |" for option, text in found]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), f"write it again: PYTHONPATH=src python {__file__}"


def test_every_option_of_every_command_has_a_help_text() -> None:
    silent = [
        (title, option)
        for name in COMMANDS
        for title, _, found in sections(name)
        for option, text in found
        if not text
    ]

    assert silent == []


if __name__ == "__main__":
    PAGE.write_text(page())
