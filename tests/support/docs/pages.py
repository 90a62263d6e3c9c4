"""The Markdown pages of the project: their code blocks, links, headings and code spans.

A code block starts with a fence that names its language and, where the text speaks of a file, the file:
```python produce.py. Tests run the blocks as they stand on the page; there is no second copy of them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
FENCE = re.compile(r"( *)```(.*)")
HEADING = re.compile(r"#{1,6} +(.*)")
LINK = re.compile(r"\]\(([^()\s]+)\)")
SPAN = re.compile(r"(`+)(.+?)\1(?!`)")
# Blocks that are examples: other languages would be shown, and run by nobody.
LANGUAGES = {"python", "sh", "text", "ini", "properties", "json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    page: Path
    line: int
    language: str
    file: str
    text: str

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


def name_of(page: Path) -> str:
    """How tests call a page: its path from the root of the project."""
    return str(page.relative_to(ROOT) if page.is_relative_to(ROOT) else page)


def example_pages() -> list[Path]:
    """The pages that users read with a terminal beside them."""
    return [page for folder in ("guides", "concepts") for page in sorted((DOCS / folder).rglob("*.md"))]


def all_pages() -> list[Path]:
    """Every page of the project. CONTRIBUTING.md is optional."""
    roots = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    return [*filter(Path.exists, roots), *sorted(DOCS.rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    return list(_blocks(page))


def _blocks(page: Path) -> Iterator[Block]:
    lines = iter(enumerate(page.read_text().splitlines(), 1))
    for number, line in lines:
        opening = FENCE.fullmatch(line)
        if opening is None:
            continue
        indent, info = opening.groups()
        language, _, file = info.partition(" ")
        found = []
        for _, inner in lines:
            closing = FENCE.fullmatch(inner)
            if closing is not None and closing[1] == indent and not closing[2]:
                break
            found.append(inner.removeprefix(indent))
        else:
            raise ValueError(f"{name_of(page)}:{number}: the block has no end")
        yield Block(
            page=page, line=number, language=language, file=file, text="".join(f"{x}\n" for x in found)
        )


def sections(page: Path) -> dict[str, list[Block]]:
    """The blocks below each heading, up to the next one of any level."""
    found: dict[str, list[Block]] = {}
    headings = [(number, match[1]) for number, line in prose(page) if (match := HEADING.fullmatch(line))]
    for block in blocks(page):
        before = [title for number, title in headings if number < block.line]
        found.setdefault(before[-1] if before else "", []).append(block)
    return found


def prose(page: Path) -> list[tuple[int, str]]:
    """The numbered lines of a page that are in no fenced block."""
    found = []
    is_inside = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if FENCE.fullmatch(line) is not None:
            is_inside = not is_inside
        elif not is_inside:
            found.append((number, line))
    return found


def indented_blocks(page: Path) -> list[int]:
    """Lines where Markdown sees a code block without a fence."""
    found = []
    before = ""
    in_list = False
    for number, line in prose(page):
        if re.match(r"([-*]|\d+\.) ", line):
            in_list = True
        elif line and not line.startswith(" "):
            in_list = False
        if line.startswith("    ") and not before.strip() and not in_list:
            found.append(number)
        before = line
    return found


def spans(page: Path) -> Iterator[tuple[int, str]]:
    """What stands in backticks outside of blocks, with the number of its line."""
    for number, line in prose(page):
        for match in SPAN.finditer(line):
            yield number, match[2].strip()


def links(page: Path) -> Iterator[tuple[int, str]]:
    """The targets of links, with the number of their line."""
    for number, line in prose(page):
        # The text of a link may be code; a link in code is none.
        readable = SPAN.sub(lambda span: re.sub(r"[\[\]()]", "", span[0]), line)
        for match in LINK.finditer(readable):
            yield number, match[1]


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    found: set[str] = set()
    for _, line in prose(page):
        heading = HEADING.fullmatch(line)
        if heading is None:
            continue
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "").strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        while (name := slug if number == 0 else f"{slug}-{number}") in found:
            number += 1
        found.add(name)
    return found


def commands(text: str) -> list[str]:
    """The commands of a block for a shell: joined where a line goes on, without comments."""
    joined = text.replace("\\\n", " ")
    stripped = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in joined.splitlines())
    return [line for line in stripped if line]
