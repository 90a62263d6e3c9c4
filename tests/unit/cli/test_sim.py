"""`barnabas sim`: a campaign, a replay, and wrong arguments."""

from pathlib import Path

import pytest

from barnabas.cli.main import main

STORED = Path(__file__).parents[2] / "sim" / "vote-lost-on-a-full-disk.json"


def test_a_campaign_reports_its_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "run", "--seeds", "2..4"]) == 0

    out = capsys.readouterr().out
    assert out.startswith("2 runs, 0 failed, 0 without a success; ")
    assert "raft.BecameLeader" in out


def test_a_stored_schedule_is_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "replay", str(STORED)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("seed 3: ")
    assert any("raft.BecameLeader" in line for line in lines)
    assert lines[-1].startswith("no violation; ")


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["run", "--seeds", "4..4"], "expected A..B with A below B"),
        (["run", "--seeds", "x"], "expected A..B"),
        (["run", "--workers", "0"], "must be at least 1"),
        (["replay", __file__], "not a stored schedule"),
    ],
)
def test_wrong_arguments_are_errors(words: list[str], wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", *words]) == 2

    assert wrong in capsys.readouterr().err
