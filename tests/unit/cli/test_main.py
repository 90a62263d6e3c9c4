"""The command line: help, exit codes, and what the first commands print."""

import json
import subprocess
import sys
from argparse import ArgumentParser
from importlib import import_module

import pytest

from barnabas import __version__
from barnabas.base.kernels import KERNELS
from barnabas.cli.main import COMMANDS, FIRST_COMMANDS, main
from barnabas.cli.version import describe_kernels


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0

    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS)


def test_help_lists_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])

    out = capsys.readouterr().out
    assert "--version" in out
    assert "-h, --help" in out


def test_without_a_command_the_first_five_are_shown_with_an_example(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 2

    out = capsys.readouterr().out
    examples = [line.split()[1] for line in out.splitlines() if line.startswith("    barnabas ")]
    assert examples == ["up", "topics", "console-producer", "console-consumer", "demo"]
    assert "barnabas --help" in out


@pytest.mark.parametrize("name", FIRST_COMMANDS)
def test_the_options_of_the_examples_exist(name: str) -> None:
    command, *words = FIRST_COMMANDS[name].split()
    assert command == name
    module = import_module(f"barnabas.cli.{name.replace('-', '_')}")
    parser = getattr(module, "Parser", ArgumentParser)(prog="barnabas", description="")
    module.arguments(parser)

    parser.parse_args(words)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("topcs", "unknown command 'topcs'; did you mean 'topics'?"),
        ("kafka-configs.sh", "unknown command 'kafka-configs.sh'; did you mean 'configs'?"),
        ("producer-perf", "unknown command 'producer-perf'; did you mean 'producer-perf-test'?"),
        ("--versoin", "unknown option '--versoin'; did you mean '--version'?"),
        ("frobnicate", "unknown command 'frobnicate'; `barnabas --help` lists all commands"),
    ],
)
def test_an_unknown_command_is_one_line_on_stderr_with_the_nearest_one(
    word: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word]) == 2

    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"barnabas: {hint}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_does_not_import_the_server_or_the_client(command: str) -> None:
    program = f"""
import sys
from barnabas.cli.main import main
try:
    main([{command!r}, "--help"])
except SystemExit as end:
    assert end.code == 0, end.code
ours = [f"barnabas.{{package}}." for package in ("server", "storage", "client", "protocol")]
heavy = ("asyncio.", "pyspark.", *ours)
found = [name for name in sys.modules if (name + ".").startswith(heavy)]
assert not found, found
"""
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def test_version_says_whether_kernels_are_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert f"barnabas {__version__}\n" in capsys.readouterr().out

    assert main(["version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kernels"].keys() == set(KERNELS)


def test_the_description_of_kernels_says_which_are_compiled() -> None:
    assert describe_kernels({"a": True, "b": True}) == "compiled (2 modules)"
    assert describe_kernels({"a": False}).startswith("interpreted, which is slower")
    assert describe_kernels({"a": True, "b": False}) == "partly compiled, interpreted: b"
