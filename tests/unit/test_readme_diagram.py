"""The README's picture is what docs/architecture.txt says, and the text names the packages that exist.

BARNABAS_WRITE_DOCS=1 draws the picture anew, as does `python docs/architecture.py`.
"""

import os
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS, PACKAGES = ROOT / "docs", ROOT / "src" / "barnabas"
TEXT, PICTURE = DOCS / "architecture.txt", DOCS / "architecture.svg"
SCRIPT = runpy.run_path(str(DOCS / "architecture.py"))


def test_the_picture_is_current() -> None:
    picture = SCRIPT["draw"](TEXT.read_text())
    if os.environ.get("BARNABAS_WRITE_DOCS"):
        PICTURE.write_text(picture)

    assert PICTURE.read_text() == picture, "run python docs/architecture.py"


def test_every_package_in_the_picture_exists() -> None:
    paths = [PACKAGES / name.replace(".", "/") for name in SCRIPT["package_names"](TEXT.read_text())]

    assert [path for path in paths if not (path.is_dir() or path.with_suffix(".py").is_file())] == []


def test_the_picture_shows_every_package() -> None:
    packages = {path.parent.name for path in PACKAGES.glob("*/__init__.py")}

    assert packages - SCRIPT["package_names"](TEXT.read_text()) == set()
