"""`barnabas storage` beside Kafka 4.3.0's own tool: the same output, exit codes and directories.

Needs Java and Maven as the other tests here do.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.cli.main import main
from barnabas.raft.snapshots import read_bootstrap
from barnabas.storage.disk import DiskFileSystem
from support.kafka.broker import CLUSTER_ID, KafkaBroker
from support.kafka.tools import KafkaTools, kafka_tools
from support.process.processes import run_to_end, started

STORAGE_TOOL = "kafka.tools.StorageTool"
DIRECTORY_ID = re.compile(r"directory\.id=[\w-]{22}")
USAGE = re.compile(r"usage: .*", re.DOTALL)


class Told(NamedTuple):
    code: int
    out: str
    err: str


class Both:
    """A configuration for each tool; they differ in the directory, which is masked as DATA."""

    def __init__(self, tools: KafkaTools, root: Path) -> None:
        self._tools = tools
        self.kafka = KafkaBroker(tools, _made(root / "theirs"))
        self.ours = _made(root / "ours") / "logs"
        self.our_file = self.ours.parent / "server.properties"
        self.our_file.write_text(
            self.kafka.properties.read_text().replace(str(self.kafka.logs), str(self.ours))
        )

    def theirs(self, *words: str) -> Told:
        done = self._tools.run(STORAGE_TOOL, [*words, "-c", str(self.kafka.properties)])
        return _plain(Told(done.returncode, done.stdout, done.stderr), self.kafka.logs)

    def barnabas(self, capsys: pytest.CaptureFixture[str], *words: str) -> Told:
        capsys.readouterr()
        code = main(["storage", *words, "-c", str(self.our_file)])
        printed = capsys.readouterr()
        return _plain(Told(code, printed.out, printed.err.replace("barnabas storage: ", "")), self.ours)


def _made(path: Path) -> Path:
    path.mkdir()
    return path


def _plain(told: Told, logs: Path) -> Told:
    def plain(text: str) -> str:
        return DIRECTORY_ID.sub("directory.id=SOME", text.replace(str(logs), "DATA"))

    # If Kafka's tool fails with an exception, its first line has the message.
    first = plain(told.err).split("\n\tat ")[0].rstrip("\n")
    return Told(told.code, plain(told.out), re.sub(r'^Exception in thread "main" [\w.]+: ', "", first))


@pytest.fixture
def both(tmp_path: Path) -> Both:
    return Both(kafka_tools(), tmp_path)


def test_the_same_is_printed_for_each_state_of_a_directory(
    both: Both, capsys: pytest.CaptureFixture[str]
) -> None:
    story = [
        ["info"],
        ["format", "-t", CLUSTER_ID, "-r", "9.9"],
        ["format", "-t", CLUSTER_ID, "-f", "foo=1"],
        ["format", "-t", CLUSTER_ID, "-f", "group.version=9"],
        ["format", "-t", CLUSTER_ID, "-f", "group.version"],
        ["format", "-t", CLUSTER_ID, "-r", "3.9", "-f", "eligible.leader.replicas.version=1"],
        ["format", "-t", CLUSTER_ID, "-r", "4.1", "-f", "metadata.version=25"],
        ["format", "--cluster-id", CLUSTER_ID, "--feature", "share.version=0"],
        ["format", "-t", CLUSTER_ID],
        ["format", "-t", CLUSTER_ID, "-g"],
        ["format", "-t", "AAAAlDBzRM2WGJual5ztlg", "-g"],
        ["info"],
    ]

    for words in story:
        assert both.barnabas(capsys, *words) == both.theirs(*words), words

    fs = DiskFileSystem()
    assert read_bootstrap(fs, str(both.ours)) == read_bootstrap(fs, str(both.kafka.logs))


def test_releases_and_features_are_printed_identically(capsys: pytest.CaptureFixture[str]) -> None:
    tools = kafka_tools()
    for words in (
        ["version-mapping"],
        ["version-mapping", "-r", "4.1"],
        ["feature-dependencies", "-f", "eligible.leader.replicas.version=1", "-f", "metadata.version=19"],
        ["feature-dependencies", "-f", "group.version=7"],
    ):
        done = tools.run(STORAGE_TOOL, words)
        code = main(["storage", *words])
        printed = capsys.readouterr()

        assert (code, printed.out) == (done.returncode, done.stdout), words
        assert printed.err.removeprefix("barnabas storage: ") == done.stderr, words


@contextmanager
def served_by_us(both: Both, config: Path) -> Iterator[None]:
    with started(both.ours.parent / "stderr.txt", "broker", str(config)) as broker:
        broker.ready()
        yield
        assert broker.stop().code == 0


@pytest.mark.parametrize("release", ["4.3", "3.7"])
def test_kafka_starts_on_a_directory_that_we_formatted(
    both: Both, capsys: pytest.CaptureFixture[str], release: str
) -> None:
    assert both.barnabas(capsys, "format", "-t", CLUSTER_ID, "-r", release).code == 0
    shutil.copytree(both.ours, both.kafka.logs)

    with both.kafka.running():
        pass

    # Our broker still accepts the directory.
    shutil.rmtree(both.ours)
    shutil.copytree(both.kafka.logs, both.ours)
    with served_by_us(both, both.our_file):
        pass


@pytest.mark.parametrize("release", ["4.3", "3.7"])
def test_we_start_on_a_directory_that_kafka_formatted(both: Both, release: str) -> None:
    both.kafka.format("-r", release)

    with served_by_us(both, both.kafka.properties):
        pass

    with both.kafka.running():
        pass


def test_a_directory_with_dynamic_voters_is_rejected_and_not_changed(both: Both, tmp_path: Path) -> None:
    text = re.sub(
        r"controller\.quorum\.voters=1@(.*)",
        r"controller.quorum.bootstrap.servers=\1",
        both.kafka.properties.read_text(),
    )
    both.kafka.properties.write_text(text)
    both.kafka.format("--standalone")

    for _ in range(2):
        ended = run_to_end(tmp_path / "err.txt", "up", "--port", "0", "--dir", str(both.kafka.logs))
        assert ended.code == 1
        assert "has dynamic voters (kraft.version 1" in ended.err
        # The second time, Kafka has run on the directory.
        with both.kafka.running():
            pass
