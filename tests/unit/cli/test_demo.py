"""Errors of the demo if a dependency is missing."""

import sys
from pathlib import Path

import pytest

from barnabas.cli.argument_parser import Misuse
from barnabas.cli.demo import check_packages, java_home


def test_a_home_without_java_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=f"JAVA_HOME is {tmp_path}, but it has no executable bin/java"):
        java_home({"PATH": "", "JAVA_HOME": str(tmp_path)})


def test_without_pyspark_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)

    with pytest.raises(Misuse, match=r"^pyspark not installed: pip install 'barnabas\[spark\]'$"):
        check_packages()
