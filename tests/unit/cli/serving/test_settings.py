"""server.properties is parsed as by Java, and overrides of the command line win."""

from pathlib import Path

import pytest

from barnabas.base.settings import InvalidSetting
from barnabas.cli.main import main
from barnabas.cli.serving.settings import BadFile, read_settings, with_absolute_directories

NODE = """
# A node
process.roles = broker,controller
node.id=7
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
controller.quorum.voters=7@127.0.0.1:9093
log.dirs=/somewhere/new
num.partitions=\\
  3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(NODE)
    return path


def test_a_file_is_read_with_comments_and_continued_lines(file: Path) -> None:
    settings = read_settings(str(file))

    assert (settings.node_id, settings.num_partitions) == (7, 3)
    assert settings.log_dirs == ("/somewhere/new",)


def test_overrides_win_over_the_file(file: Path) -> None:
    assert read_settings(str(file), {"num.partitions": "5"}).num_partitions == 5


def test_relative_directories_are_resolved_against_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    found = with_absolute_directories({"log.dirs": "a, /b/../c/ ,./d", "log.dir": "", "node.id": "1"})

    assert found == {"log.dirs": f"{tmp_path}/a,/c,{tmp_path}/d", "log.dir": "", "node.id": "1"}


def test_a_missing_and_a_malformed_file_are_reported(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"missing: No such file"):
        read_settings(str(tmp_path / "missing"))
    (tmp_path / "odd").write_bytes(b"a=\\u12")
    with pytest.raises(BadFile, match=r"odd: line 1: \\u is not followed"):
        read_settings(str(tmp_path / "odd"))


def test_an_invalid_setting_is_attributed_to_the_file_or_the_command_line(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InvalidSetting):
        read_settings(str(file), {"num.partitions": "x"})
    assert main(["broker", str(file), "--override", "num.partitions=x"]) == 2
    assert "barnabas broker: --override num.partitions=x: must be" in capsys.readouterr().err

    file.write_text(NODE + "no.such.setting=1\n")
    assert main(["broker", str(file)]) == 1
    assert f"barnabas broker: {file}: no.such.setting=(hidden): no such setting" in capsys.readouterr().err


def test_an_unformatted_directory_names_the_format_command(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["broker", str(file), "--override", f"log.dirs={tmp_path}/new"]) == 1

    assert f"{tmp_path}/new: not formatted; run `barnabas storage format" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("word", ["num.partitions", "=1"])
def test_an_override_is_a_name_and_a_value(word: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", str(file), "--override", word]) == 2
    assert "must be NAME=VALUE" in capsys.readouterr().err
