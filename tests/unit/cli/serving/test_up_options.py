"""`barnabas up`: settings from options, and options that are rejected before the start."""

import argparse
from pathlib import Path

import pytest

from barnabas.base.ids import Uuid
from barnabas.cli import up
from barnabas.cli.argument_parser import split_setting
from barnabas.cli.main import main
from barnabas.cli.serving.settings import make_settings
from barnabas.storage.directory.meta_properties import MetaProperties, write_meta_properties
from barnabas.storage.disk import DiskFileSystem

NEW = "/nowhere/at all"


def settings(*words: str, directory: str = NEW) -> dict[str, str]:
    parser = argparse.ArgumentParser()
    up.arguments(parser)
    options = parser.parse_args(words)
    given = dict(split_setting("--config", one) for one in options.config)
    return make_settings(options, given, directory)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["up", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("barnabas up: ")
    assert printed.err.count("\n") == 1
    return printed.err


def test_without_options_it_is_a_broker_and_a_controller_on_this_machine_alone() -> None:
    assert settings() == {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@127.0.0.1:0",
        "log.dirs": NEW,
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }


@pytest.mark.parametrize(
    ("host", "listener"),
    [
        ("localhost", "PLAINTEXT://localhost:1"),
        ("::1", "PLAINTEXT://[::1]:1"),
        ("[::1]", "PLAINTEXT://[::1]:1"),
        ("10.0.0.7", "PLAINTEXT://10.0.0.7:1"),
    ],
)
def test_the_host_is_where_clients_find_it(host: str, listener: str) -> None:
    found = settings("--host", host, "--port", "1")

    assert found["listeners"].split(",")[0] == listener
    assert "advertised.listeners" not in found


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_wildcard_host_advertises_a_resolvable_name(host: str) -> None:
    told = settings("--host", host, "--port", "0")["advertised.listeners"]

    assert told.startswith("PLAINTEXT://")
    assert told.endswith(":0")
    assert told.removeprefix("PLAINTEXT://").removesuffix(":0") not in ("", "0.0.0.0", "[::]")


def test_given_advertised_listeners_are_used() -> None:
    found = settings("--host", "0.0.0.0", "--config", "advertised.listeners=PLAINTEXT://broker.example:9092")

    assert found["advertised.listeners"] == "PLAINTEXT://broker.example:9092"


def test_settings_are_passed_on_as_they_are() -> None:
    found = settings(
        "--config", "num.partitions=3", "--config", "log.retention.ms=-1", "--config", "broker.rack=a=b"
    )

    assert (found["num.partitions"], found["log.retention.ms"], found["broker.rack"]) == ("3", "-1", "a=b")


def test_the_node_id_of_a_formatted_directory_is_used(tmp_path: Path) -> None:
    owner = MetaProperties(cluster_id="c", node_id=42, directory_id=Uuid(b"0123456789abcdef"))
    write_meta_properties(DiskFileSystem(), str(tmp_path), owner, now_ms=0)

    found = settings(directory=str(tmp_path))

    assert (found["node.id"], found["controller.quorum.voters"]) == ("42", "42@127.0.0.1:0")


@pytest.mark.parametrize("option", ["--brokers", "--controllers"])
def test_more_than_one_of_anything_is_not_built_yet(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "not built yet" in refused(capsys, option, "3")
    assert "at least 1" in refused(capsys, option, "0")


@pytest.mark.parametrize("name", sorted(up.DECIDED))
def test_a_setting_that_an_option_decides_is_rejected(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"--config {name}: " in refused(capsys, "--config", f"{name}=x")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("log.retenton.ms=4", "did you mean log.retention.ms?"),
        ("num.partitions=many", "num.partitions=many: must be a 32-bit integer"),
        ("num.partitions=0", "num.partitions=0: must be"),
        ("num.partitions", "must be NAME=VALUE"),
        ("=3", "must be NAME=VALUE"),
        ("ssl.keystore.password=geheim", "ssl.keystore.password"),
    ],
)
def test_invalid_settings_are_misuse(
    given: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    error = refused(capsys, "--dir", str(tmp_path / "new"), "--config", given)

    assert said in error
    assert "geheim" not in error
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("words", [["--port", "65536"], ["--port", "-1"], ["--metrics-port", "70000"]])
def test_an_invalid_port_is_misuse(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "must be from 0 to 65535" in refused(capsys, *words)


@pytest.mark.parametrize("directory", ["", "/", "a,b"])
def test_an_invalid_directory_is_misuse(directory: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--dir" in refused(capsys, "--dir", directory)
