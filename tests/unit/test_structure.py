"""The source tree stays readable: no folder with too many files, and few very small modules."""

from collections import Counter
from pathlib import Path

import pytest

import barnabas

SOURCE = Path(barnabas.__file__).parent
# A reader takes in a folder at a glance up to about this size. A larger one has parts that can be named.
FILES_MAX = 36
# Below this size a module mostly costs its readers a jump to another file. It belongs to its caller or to the
# other half of its subject. Some are right as they are, such as a table of constants; hence a number of them.
LINES_MIN = 40
SMALL_MODULES_MAX = 45


def crowded_folders(source: Path, most: int) -> list[str]:
    folders = Counter(path.parent for path in source.rglob("*.py"))
    return [
        f"{folder.relative_to(source)}: {count} files"
        for folder, count in sorted(folders.items())
        if count > most
    ]


def small_modules(source: Path) -> list[str]:
    """Return the modules with few lines. The `__init__.py` of a package is not a module to merge."""
    return [
        f"{path.relative_to(source)}: {lines} lines"
        for path in sorted(source.rglob("*.py"))
        if path.name != "__init__.py" and (lines := len(path.read_text().splitlines())) < LINES_MIN
    ]


def test_no_folder_has_too_many_files() -> None:
    assert crowded_folders(SOURCE, FILES_MAX) == []


def test_few_modules_are_small() -> None:
    small = small_modules(SOURCE)

    assert len(small) <= SMALL_MODULES_MAX, "\n".join([f"{len(small)} small modules:", *small])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text('"""A package."""\n')
    (package / "small.py").write_text("x = 1\n" * (LINES_MIN - 1))
    (package / "large.py").write_text("x = 1\n" * LINES_MIN)
    return tmp_path


def test_a_crowded_folder_is_found(tree: Path) -> None:
    assert crowded_folders(tree, 3) == []
    assert crowded_folders(tree, 2) == ["package: 3 files"]


def test_a_small_module_is_found_and_an_init_is_not(tree: Path) -> None:
    assert small_modules(tree) == [f"package/small.py: {LINES_MIN - 1} lines"]
