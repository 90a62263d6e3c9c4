"""CONTRIBUTING.md names files and make targets that exist, and packages at the levels of their imports."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
LEVELS = re.findall(r"^\| (\d+) \| `(\w+)` \|", PAGE, re.MULTILINE)


def test_every_path_exists() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", PAGE)
    shown = re.findall(r"\b((?:tests|docs|bench|src)/[\w./-]+\w)", PAGE)

    assert len(links) > 15
    assert [path for path in {*links, *shown} if not (ROOT / path).exists()] == []


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert set(re.findall(r"(?:^|`|runs )make (\w+)", PAGE, re.MULTILINE)) <= targets


def test_every_package_is_named_at_its_level() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    [layers] = [one["layers"] for one in linter["contracts"] if one["type"] == "layers"]
    expected = {
        (str(level), package.removeprefix("barnabas."))
        for level, packages in enumerate(reversed(layers), start=1)
        for package in packages.split(" | ")
    }

    assert set(LEVELS) == expected
    assert {name for _, name in LEVELS} == {
        path.parent.name for path in (ROOT / "src" / "barnabas").glob("*/__init__.py")
    }
