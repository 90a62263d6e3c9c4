"""What a type checker sees of the installed package: right use passes, and wrong use is found."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import barnabas
from support.kit import python

USES = Path(__file__).with_name("uses")
TIMEOUT_S = 120


class Error(NamedTuple):
    line: int
    # As mypy names it; pyright has other names.
    rule: str


def expected(file: Path) -> list[Error]:
    """What the comments of a file announce: `# error: rule`."""
    lines = enumerate(file.read_text().splitlines(), start=1)
    return [Error(number, rule) for number, line in lines for rule in re.findall(r"# error: ([a-z-]+)", line)]


def test_the_package_says_that_it_has_types() -> None:
    assert (Path(barnabas.__file__).parent / "py.typed").exists()


def test_mypy_passes_right_use_and_finds_wrong_use(tmp_path: Path) -> None:
    # Not the configuration of this project.
    options = ["--strict", "--config-file", "", "--cache-dir", str(tmp_path), "--no-error-summary"]
    files = [str(USES / "right.py"), str(USES / "wrong.py")]

    ended = python("-m", "mypy", *options, "--output", "json", *files, cwd=tmp_path)

    found = [json.loads(line) for line in ended.out.splitlines()]
    assert {Path(one["file"]).name for one in found} == {"wrong.py"}, ended.out
    assert sorted({Error(one["line"], one["code"]) for one in found}) == expected(USES / "wrong.py")


def test_pyright_passes_right_use_and_finds_wrong_use(tmp_path: Path) -> None:
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed: npm install -g pyright")
    # It looks at files of its project only.
    shutil.copytree(USES, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    settings = {
        "typeCheckingMode": "strict",
        "extraPaths": [str(Path(barnabas.__file__).parents[1])],
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))

    command = [pyright, "--outputjson", "--pythonpath", sys.executable, "--project", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)

    found = [one for one in json.loads(ended.stdout)["generalDiagnostics"] if one["severity"] == "error"]
    assert {Path(one["file"]).name for one in found} == {"wrong.py"}, ended.stdout
    lines = {one["range"]["start"]["line"] + 1 for one in found}
    assert lines == {one.line for one in expected(USES / "wrong.py")}
