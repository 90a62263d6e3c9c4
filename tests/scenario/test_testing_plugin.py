"""The pytest plugin, in separate pytest sessions: fixtures, marker, options, workers."""

from pathlib import Path

import pytest

from support.kit import installed_session, pytest_session


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A pytest session in an empty directory, with its own settings."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    return tmp_path


def test_tests_share_the_broker_and_have_their_own_topics(suite: Path) -> None:
    (suite / "test_it.py").write_text(
        """
import pytest
seen = []

@pytest.mark.parametrize("case", ["a/b", "ü", "1.5"])
def test_mine(barnabas_broker, barnabas_topic, case):
    assert (barnabas_broker.directory / f"{barnabas_topic}-0").exists()
    assert barnabas_topic.startswith("test_mine-")
    seen.append((barnabas_broker.bootstrap, barnabas_topic))

def test_afterwards(barnabas_broker):
    assert len({bootstrap for bootstrap, topic in seen}) == 1
    assert len({topic for bootstrap, topic in seen}) == 3
    for _, topic in seen:
        assert not (barnabas_broker.directory / f"{topic}-0").exists()
"""
    )

    ended = pytest_session(suite)

    assert ended.code == 0, ended.out
    assert "4 passed" in ended.out


def test_the_marker_configures_the_topic(suite: Path) -> None:
    (suite / "test_it.py").write_text(
        """
import pytest

@pytest.mark.barnabas_topic(partitions=3, settings={"retention.ms": 1000})
def test_three(barnabas_broker, barnabas_topic):
    assert len(list(barnabas_broker.directory.glob(f"{barnabas_topic}-*"))) == 3

@pytest.mark.barnabas_topic(settings={"retention": 1000})
def test_bad(barnabas_topic):
    pass
"""
    )

    ended = pytest_session(suite)

    assert ended.code == 1
    assert "1 passed, 1 error" in ended.out
    assert "INVALID_CONFIG" in ended.out


def test_a_test_can_create_and_delete_several_topics(suite: Path) -> None:
    (suite / "test_it.py").write_text(
        """
def test_two(barnabas_broker, barnabas_topics):
    one, two = barnabas_topics(), barnabas_topics(partitions=2)
    assert one != two
    barnabas_broker.delete_topic(one)
"""
    )

    ended = pytest_session(suite)

    assert ended.code == 0, ended.out


def test_settings_and_storage_come_from_the_ini_file_and_the_command_line(suite: Path) -> None:
    (suite / "pytest.ini").write_text(
        "[pytest]\nbarnabas_storage = memory\nbarnabas_settings =\n    num.partitions = 2\n"
        "    auto.create.topics.enable=false\n"
    )
    (suite / "test_it.py").write_text(
        """
def test_it(barnabas_broker, barnabas_topic):
    assert len(list(barnabas_broker.directory.glob(f"{barnabas_topic}-*"))) == 2
    print("in", barnabas_broker.directory)
"""
    )

    assert "in /dev/shm/" in pytest_session(suite, "-s").out
    assert "in /dev/shm/" not in pytest_session(suite, "-s", "--barnabas-storage", "disk").out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("barnabas_storage = tape", "barnabas_storage = tape: must be one of auto, memory, disk"),
        ("barnabas_settings = num.partitions", "barnabas_settings: num.partitions: must be NAME=VALUE"),
        ("barnabas_settings = num.partition=2", "did you mean num.partitions?"),
    ],
)
def test_invalid_settings_fail_in_the_broker_fixture(suite: Path, line: str, said: str) -> None:
    (suite / "pytest.ini").write_text(f"[pytest]\n{line}\n")
    (suite / "test_it.py").write_text("def test_it(barnabas_broker): pass\ndef test_other(): pass\n")

    ended = pytest_session(suite)

    assert said in ended.out
    assert "1 passed, 1 error" in ended.out


def test_every_xdist_worker_has_its_own_broker(suite: Path) -> None:
    (suite / "test_it.py").write_text(
        """
import pathlib, pytest

@pytest.mark.parametrize("number", range(8))
def test_it(barnabas_broker, barnabas_topic, worker_id, number):
    with open("seen.txt", "a") as seen:
        seen.write(f"{worker_id} {barnabas_broker.bootstrap}\\n")
"""
    )

    ended = pytest_session(suite, "-n", "2", "--dist", "each", plugins=("xdist.plugin",))

    assert ended.code == 0, ended.out
    seen = set((suite / "seen.txt").read_text().splitlines())
    assert len({line.split()[0] for line in seen}) == 2
    assert len({line.split()[1] for line in seen}) == 2


def test_the_help_lists_the_option_and_the_marker(suite: Path) -> None:
    assert "--barnabas-storage={auto,memory,disk}" in pytest_session(suite, "--help").out
    assert "@pytest.mark.barnabas_topic(partitions=None" in pytest_session(suite, "--markers").out


def test_the_installed_plugin_excludes_our_modules_from_rewriting(suite: Path) -> None:
    (suite / "test_it.py").write_text(
        """
import sys

def test_it(barnabas_broker):
    loader = sys.modules["barnabas.server.broker"].__spec__.loader
    assert type(loader).__name__ == "SourceFileLoader"
"""
    )

    ended = installed_session(suite)

    assert ended.code == 0, ended.out
