"""Parsing of --add-config, --add-config-file and --delete-config."""

from pathlib import Path

import pytest

from barnabas.cli import configs
from barnabas.cli.config import changes
from barnabas.cli.config.changes import parse_pairs
from barnabas.cli.option_parser import Options, Parser
from barnabas.cli.tool import ToolFailed


def read(*words: str) -> Options:
    parser = Parser(prog="barnabas configs", description="")
    configs.arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=1", {"a": "1"}),
        ("a=1,b=2", {"a": "1", "b": "2"}),
        ("a=[x,y],b=2", {"a": "x,y", "b": "2"}),
        ("a=", {"a": ""}),
        (" a = 1 ", {"a": "1"}),
        ("a=[p=1,q=2]", {"a": "p=1,q=2"}),
        ("a=1,", {"a": "1"}),
    ],
)
def test_pairs_are_split_at_commas_outside_of_brackets(text: str, pairs: dict[str, str]) -> None:
    assert parse_pairs(text) == pairs


@pytest.mark.parametrize("text", ["a", "a=1,b", "a=b=c"])
def test_an_invalid_pair_is_rejected(text: str) -> None:
    with pytest.raises(ToolFailed, match=r"^requirement failed: Invalid entity config: "):
        parse_pairs(text)


def test_invalid_characters_in_names_are_rejected() -> None:
    with pytest.raises(ToolFailed, match=r"^Invalid character found for config key: a b$"):
        changes.to_add(read("--add-config", "a b=1"))


def test_a_properties_file_can_be_added(tmp_path: Path) -> None:
    path = tmp_path / "add.properties"
    path.write_text("# a comment\na=1\nb = x,y\n")

    assert changes.to_add(read("--add-config-file", str(path))) == {"a": "1", "b": "x,y"}


def test_a_missing_or_malformed_file_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.properties"
    broken.write_text("a=\\u00zz\n")

    with pytest.raises(ToolFailed, match=r"/nowhere: No such file or directory$"):
        changes.to_add(read("--add-config-file", str(tmp_path / "nowhere")))
    with pytest.raises(ToolFailed, match=r"broken\.properties: "):
        changes.to_add(read("--add-config-file", str(broken)))


def test_names_to_delete_are_comma_separated_or_repeated() -> None:
    assert changes.to_delete(read("--delete-config", "a, b", "--delete-config", "c")) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            ("--alter",),
            "At least one of --add-config, --add-config-file, or --delete-config must be specified",
        ),
        (
            ("--add-config", "a=1", "--add-config-file", "f"),
            "Only one of --add-config or --add-config-file must be specified",
        ),
    ],
)
def test_exactly_one_source_of_changes_is_required(words: tuple[str, ...], why: str) -> None:
    with pytest.raises(ToolFailed, match=f"^{why}"):
        changes.check(read(*words))
