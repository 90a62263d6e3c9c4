"""dump-log beyond Kafka's tool: errors, misuse, encodings, bounded reading, fast start.

What it prints of files is compared with Kafka's own output in tests/differential/test_dump_log_of_kafka.py.
"""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.base.ids import Uuid
from barnabas.cli.dump import source as source_module
from barnabas.cli.dump.batches import walk
from barnabas.cli.dump.java import add_to_sequence, int32, string, take_from_sequence
from barnabas.cli.dump.source import WINDOW_BYTES, DumpFailed, Source
from barnabas.cli.main import main
from barnabas.protocol.stored.control import LeaderChangeMessage, LeaderChangeMessageVoter
from barnabas.protocol.stored.framing import encode_control
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, control_key

pytestmark = pytest.mark.kernel

API = "org.apache.kafka.tools.api"


def write_log(directory: Path, *values: bytes) -> str:
    path = directory / "00000000000000000000.log"
    path.write_bytes(build_batch([(1, b"k", value, ()) for value in values]))
    return str(path)


def test_the_decoder_of_tiered_storage_fails_after_earlier_lines_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_log(tmp_path, b"v")

    assert main(["dump-log", "--remote-log-metadata-decoder", "--files", path]) == 1

    printed = capsys.readouterr()
    assert "baseOffset: 0" in printed.out
    assert printed.err == (
        f"barnabas dump-log: {path}: record 0: records of tiered storage are not supported\n"
    )


def test_an_unknown_decoder_class_lists_the_supported_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--value-decoder-class", "com.example.Mine", "--files", write_log(tmp_path, b"v")]

    assert main(["dump-log", *arguments]) == 1

    error = capsys.readouterr().err
    assert "unknown decoder 'com.example.Mine'" in error
    assert f"{API}.LongDecoder" in error


def test_the_default_decoder_shows_bytes_in_hex(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_log(tmp_path, b"\x00\xff")

    assert main(["dump-log", f"--value-decoder-class={API}.DefaultDecoder", "--files", path]) == 0

    assert capsys.readouterr().out.endswith("key: k payload: 00ff\n")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--print-data-log"],
        ["--files"],
        ["--nonsense", "--files", "x"],
        ["--file", "x"],
        ["--max-bytes", "many", "--files", "x"],
        ["--max-bytes", str(2**31), "--files", "x"],
    ],
)
def test_misuse_is_reported_on_stderr(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["dump-log", *arguments])

    assert left.value.code == 2
    assert capsys.readouterr().out == ""


def test_the_version_is_kafkas(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["dump-log", "--version"])

    assert left.value.code == 0
    assert capsys.readouterr().out == "4.3.0\n"


def test_an_unencodable_character_becomes_a_question_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_log(tmp_path, "ż".encode())
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))

    assert main(["dump-log", "--print-data-log", "--files", path]) == 0

    assert raw.getvalue().endswith(b"payload: ?\n")


def test_a_read_only_file_is_dumped_and_not_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Path(write_log(tmp_path, b"v"))
    index = log.with_suffix(".index")
    index.write_bytes(bytes(13))
    before = {path: path.read_bytes() for path in (log, index)}
    for path in before:
        path.chmod(0o444)

    assert main(["dump-log", "--files", f"{log},{index}"]) == 0

    assert "offset: 0 position: 0" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in before} == before


def test_a_missing_index_is_not_created(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = Path(write_log(tmp_path, b"v"))

    assert main(["dump-log", "--files", str(log.with_suffix(".index"))]) == 1

    assert "no such file" in capsys.readouterr().err
    assert os.listdir(tmp_path) == [log.name]


def test_a_directory_in_place_of_a_log_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.mkdir()

    assert main(["dump-log", "--files", str(path)]) == 1

    assert capsys.readouterr().err == f"barnabas dump-log: {path}: is a directory\n"


# Reading


def test_a_log_is_read_a_window_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real_pread = os.pread

    def pread(descriptor: int, size: int, at: int) -> bytes:
        asked.append(size)
        return real_pread(descriptor, size, at)

    path = tmp_path / "00000000000000000000.log"
    batch = build_batch([(1, None, bytes(100_000), ())])
    path.write_bytes(batch * 50)
    monkeypatch.setattr(source_module.os, "pread", pread)

    with Source(str(path)) as source:
        positions = [found.position for found in walk(source, 0, source.size)]

    assert positions == [number * len(batch) for number in range(50)]
    assert max(asked) == WINDOW_BYTES
    assert len(asked) <= 2 * path.stat().st_size // WINDOW_BYTES + 1


def test_a_batch_as_large_as_its_file_is_checked_piece_by_piece(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(build_batch([(1, None, bytes(range(256)) * 20_000, ())]))
    assert path.stat().st_size > 4 * WINDOW_BYTES

    assert main(["dump-log", "--files", str(path)]) == 0

    assert "isvalid: true" in capsys.readouterr().out


def test_a_file_that_is_larger_than_any_segment_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    with path.open("wb") as file:
        file.truncate(2**31)

    with pytest.raises(DumpFailed, match="file size 2147483648 exceeds"):
        Source(str(path))


def test_a_closed_pipe_ends_the_dump_quietly(tmp_path: Path) -> None:
    path = write_log(tmp_path, *[b"v" * 100] * 20_000)
    command = f"{sys.executable} -m barnabas dump-log --print-data-log --files {path} | head -n 1"

    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == (f"Dumping {path}\n", "")


def test_the_command_starts_without_messages_and_records() -> None:
    program = (
        "import sys; import barnabas.cli.dump_log;"
        "heavy = ('barnabas.protocol', 'barnabas.records', 'barnabas.storage', 'asyncio');"
        "print([name for name in sys.modules if name.startswith(heavy)])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


# Java's arithmetic


def test_sequences_wrap_around_after_the_largest() -> None:
    assert add_to_sequence(2**31 - 1, 1) == 0
    assert add_to_sequence(2**31 - 3, 5) == 2
    assert take_from_sequence(2, 5) == 2**31 - 3
    assert take_from_sequence(5, 2) == 3


def test_sums_wrap_to_32_bits() -> None:
    assert int32(2**31) == -(2**31)
    assert int32(-(2**31) - 1) == 2**31 - 1


def test_a_lone_surrogate_becomes_one_replacement_character() -> None:
    assert string(b"a\xed\xa0\x80b\xff\xffc") == "a\ufffdb\ufffd\ufffdc"


# Where Kafka's tool fails


def test_a_leader_change_with_directory_ids_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    voter = LeaderChangeMessageVoter(voter_id=3, voter_directory_id=Uuid(bytes(15) + b"\x01"))
    change = LeaderChangeMessage(version=1, leader_id=3, voters=[voter])
    record = (1, control_key(ControlType.LEADER_CHANGE), encode_control(change, 1), ())
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(build_batch([record], control=True))

    assert main(["dump-log", "--deep-iteration", "--files", str(path)]) == 0

    assert capsys.readouterr().out.endswith(
        'LeaderChange: {"version":1,"leaderId":3,"voters":[{"voterId":3,'
        '"voterDirectoryId":"AAAAAAAAAAAAAAAAAAAAAQ"}],"grantingVoters":[]}\n'
    )
