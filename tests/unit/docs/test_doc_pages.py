"""The reader of Markdown that the other tests of pages stand on."""

from pathlib import Path

import pytest

from support.docs.pages import anchors, blocks, commands, indented_blocks, links, prose, spans
from support.docs.shell import check_requirement, never_ends, shape

PAGE = """\
# The `barnabas` tools

See [the list](cli.md#up), [`code`](code.md) and `not [a](link)`.

```python first.py
print("[no](link)")
```

## The tools, again

```sh
barnabas topics --list \\
    --json            # a comment
```

- a list
    with an indented line

    and another

text

    an indented block

## The tools, again
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_blocks_have_a_language_a_file_and_a_line(page: Path) -> None:
    found = [(one.language, one.file, one.line) for one in blocks(page)]

    assert found == [("python", "first.py", 5), ("sh", "", 11)]
    assert blocks(page)[0].text == 'print("[no](link)")\n'


def test_a_block_without_an_end_is_an_error(page: Path) -> None:
    page.write_text("```python\nprint()\n")

    with pytest.raises(ValueError, match="no end"):
        blocks(page)


def test_headings_have_the_anchors_of_github(page: Path) -> None:
    assert anchors(page) == {"the-barnabas-tools", "the-tools-again", "the-tools-again-1"}


def test_links_are_found_outside_of_code_only(page: Path) -> None:
    assert {target for _, target in links(page)} == {"cli.md#up", "code.md"}


def test_spans_are_the_texts_in_backticks(page: Path) -> None:
    assert [text for _, text in spans(page)] == ["barnabas", "code", "not [a](link)"]


def test_prose_has_no_blocks(page: Path) -> None:
    assert not any("print" in line for _, line in prose(page))


def test_a_block_by_indent_is_found_and_a_list_is_none(page: Path) -> None:
    lines = page.read_text().splitlines()

    assert [lines[number - 1].strip() for number in indented_blocks(page)] == ["an indented block"]


def test_commands_are_joined_and_have_no_comments(page: Path) -> None:
    assert commands(blocks(page)[1].text) == ["barnabas topics --list      --json"]


def test_commands_that_a_reader_has_to_stop() -> None:
    consumer = "barnabas console-consumer --topic a"

    assert never_ends(consumer)
    assert never_ends("python program.py")
    assert not never_ends(f"{consumer} --max-messages 1")
    assert not never_ends("barnabas topics --list")


def test_the_shape_of_an_output_has_no_numbers() -> None:
    assert shape("ready: 127.0.0.1:9092\n") == shape("ready: 127.0.0.1:40313")
    assert shape("ready: 1") != shape("started: 1")


@pytest.mark.parametrize("wrong", ["barnabas[kafka]", "requests", "two words"])
def test_a_requirement_that_cannot_be_installed_is_found(wrong: str) -> None:
    check_requirement("barnabas[spark]")

    with pytest.raises(AssertionError):
        check_requirement(wrong)
