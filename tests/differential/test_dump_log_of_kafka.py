"""dump-log compared with Kafka 4.3.0's own tool: on the sample, and on three hundred damaged files."""

import re
from pathlib import Path

import pytest

from barnabas.cli.main import main
from support.kafka.sample import FIXTURES, sample_files
from support.log.dump_answers import CASES, our_answer, written_answers

pytestmark = pytest.mark.kernel


def printed_runs() -> dict[str, str]:
    """Return each command of the transcript with its output."""
    text = (FIXTURES / "dump-log.txt").read_text()
    runs = {}
    for block in re.split(r"^\$ kafka-dump-log.sh ", text, flags=re.MULTILINE)[1:]:
        command, _, printed = block.partition("\n")
        runs[command] = printed
    return runs


RUNS = printed_runs()


@pytest.mark.parametrize("command", RUNS)
def test_the_sample_is_printed_line_for_line(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = command.rpartition("DATA/")[2]
    directory = tmp_path / Path(file).parent
    directory.mkdir()
    for name, data in sample_files().items():
        if Path(name).parent == Path(file).parent:
            (tmp_path / name).write_bytes(data)

    code = main(["dump-log", *command.replace("DATA", str(tmp_path)).split()])

    printed = capsys.readouterr().out.replace(str(tmp_path), "DATA")
    if RUNS[command].endswith("[exit 0]\n"):
        assert f"{printed}[exit {code}]\n" == RUNS[command]
    else:
        # The last output of the transcript is truncated.
        assert command == list(RUNS)[-1]
        assert RUNS[command].count("\n") > 80
        assert printed.startswith(RUNS[command])


def test_there_is_a_recorded_output_for_every_damaged_file() -> None:
    assert written_answers().keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_damaged_files_are_dumped_as_by_kafka(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = our_answer(CASES[name], tmp_path, capsys)

    assert answer.comparable() == written_answers()[name].comparable()
