"""The command line: help, exit codes, and what the first commands print."""

import json

import pytest

from barnabas import __version__
from barnabas.base.kernels import KERNELS
from barnabas.cli.main import COMMANDS, main
from barnabas.cli.version import describe_kernels


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0

    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS)


def test_without_a_command_the_tool_is_misused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage" in capsys.readouterr().out


def test_an_unknown_command_is_misuse_and_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["frobnicate"]) == 2

    printed = capsys.readouterr()
    assert printed.out == ""
    assert "no command 'frobnicate'" in printed.err


def test_version_says_whether_kernels_are_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert f"barnabas {__version__}\n" in capsys.readouterr().out

    assert main(["version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kernels"].keys() == set(KERNELS)


def test_kernels_are_described_in_words() -> None:
    assert describe_kernels({"a": True, "b": True}) == "compiled (2 modules)"
    assert describe_kernels({"a": False}).startswith("interpreted, which is slower")
    assert describe_kernels({"a": True, "b": False}) == "partly compiled, interpreted: b"
