"""A broker that cannot start says why: one line with the file or setting, what is wrong, and what to do."""

import fcntl
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.cli.main import main
from support.process.processes import Ended, run_to_end, started

CLUSTER = "8UFBlDBzRM2WGJual5ztlg"
OTHER_CLUSTER = "bD1yXWZqQwOnRPZBkqGdXQ"


class Node:
    """A formatted node with two log directories and a properties file, which tests damage."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = root / "data"
        self.more = root / "more"
        self.file = root / "server.properties"
        self.settings = {
            "process.roles": "broker,controller",
            "node.id": "5",
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "5@127.0.0.1:0",
            "log.dirs": f"{self.data},{self.more}",
        }
        # Held until the end of the test: locks, ports.
        self.held: list[socket.socket] = []
        self.write()
        assert main(["storage", "format", "-t", CLUSTER, "-c", str(self.file)]) == 0

    def write(self, *lines: str, **changes: str) -> None:
        self.settings |= {name.replace("_", "."): value for name, value in changes.items()}
        text = "".join(f"{name}={value}\n" for name, value in self.settings.items())
        self.file.write_text(text + "".join(f"{line}\n" for line in lines))

    def meta(self, old: str, new: str, *, of: Path | None = None) -> None:
        """Change the text of a meta.properties, by a regular expression."""
        path = (of or self.data) / "meta.properties"
        path.write_text(re.sub(old, new, path.read_text(), flags=re.DOTALL | re.MULTILINE))

    def start(self) -> Ended:
        return run_to_end(self.root / "stderr.txt", "broker", str(self.file))


@pytest.fixture
def node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Node]:
    made = Node(tmp_path)
    capsys.readouterr()
    yield made
    for held in made.held:
        held.close()


class Case(NamedTuple):
    breaks: Callable[[Node], object]
    # A regular expression for the line; DATA, MORE and FILE stand for the paths.
    says: str


def _take_port(node: Node) -> None:
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    node.held.append(taken)
    port = taken.getsockname()[1]
    node.write(listeners=f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _in_place_of(path: Path, make: Callable[[Path], object]) -> None:
    _remove(path)
    make(path)


def _zookeeper(node: Node) -> None:
    (node.data / "meta.properties").write_text(f"#Thu\nversion=0\nbroker.id=5\ncluster.id={CLUSTER}\n")


def _data_of_nobody(node: Node) -> None:
    """The directory of a ZooKeeper-based broker whose meta.properties was removed."""
    (node.data / "meta.properties").unlink()
    (node.more / "meta.properties").unlink()
    (node.data / "orders-0").mkdir()
    (node.data / "cleaner-offset-checkpoint").write_text("0\n0\n")


META = "DATA/meta.properties"
RESTORE = "restore the file from a backup, or recreate it with version=1, cluster.id and node.id"
CASES = {
    "meta.properties is empty": Case(
        lambda node: (node.data / "meta.properties").write_text(""), f"{META}: the file is empty; {RESTORE}"
    ),
    "meta.properties has only a comment": Case(
        lambda node: (node.data / "meta.properties").write_text("#Thu Nov 19\n"),
        f"{META}: the file is empty; {RESTORE}",
    ),
    "meta.properties is garbled": Case(
        lambda node: (node.data / "meta.properties").write_bytes(bytes(range(128, 256)) * 10),
        f"{META}: version is missing; {RESTORE}",
    ),
    "meta.properties is zeros": Case(
        lambda node: (node.data / "meta.properties").write_bytes(bytes(200)),
        f"{META}: version is missing; {RESTORE}",
    ),
    "meta.properties is cut off": Case(
        lambda node: node.meta(r"cluster\.id=[^\n]*", ""), f"{META}: cluster.id is missing; {RESTORE}"
    ),
    "meta.properties has a bad escape": Case(
        lambda node: node.meta(r"cluster\.id=[^\n]*", r"cluster.id=\\u12"), f"{META}: .*"
    ),
    "version of ZooKeeper's time": Case(
        _zookeeper,
        "DATA has meta.properties of version 0, from a cluster with ZooKeeper; migrate .* Kafka 3.9",
    ),
    "broker.id and no version": Case(
        lambda node: (node.data / "meta.properties").write_text("broker.id=5\n"),
        "DATA has meta.properties of version 0, from a cluster with ZooKeeper; migrate",
    ),
    "version of the future": Case(
        lambda node: node.meta("version=1", "version=2"), f"{META}: version is '2', expected 1"
    ),
    "no node.id": Case(
        lambda node: node.meta(r"^node\.id=5\n", ""),
        f"{META}: node.id is '', expected 0 to 2147483647; {RESTORE}",
    ),
    "node.id is no number": Case(
        lambda node: node.meta("node.id=5", "node.id=five"), f"{META}: node.id is 'five', expected 0 to"
    ),
    "another node.id": Case(
        lambda node: [node.meta("node.id=5", "node.id=6", of=one) for one in (node.data, node.more)],
        "log directory DATA belongs to node 6, not to node 5; correct node.id or log.dirs",
    ),
    "a key twice, and the last one counts as in Java": Case(
        lambda node: node.meta(r"\Z", "node.id=7\n"),
        "log directory .* belongs to node .*; log.dirs must name directories of one node only",
    ),
    "another cluster in the second directory": Case(
        lambda node: node.meta(r"cluster.id=[^\n]*", f"cluster.id={OTHER_CLUSTER}", of=node.more),
        "log directory .* belongs to node 5 in cluster .*, but .* belongs to node 5 in cluster .*; "
        "log.dirs must name directories of one node only",
    ),
    "a copy of a directory": Case(
        lambda node: shutil.copy(node.data / "meta.properties", node.more),
        "log directory .* has the id .*, but so has .*: one is a copy of the other; remove it from log.dirs",
    ),
    "directory.id is none": Case(
        lambda node: node.meta(r"directory.id=[^\n]*", "directory.id=@@"),
        f"{META}: directory.id: .*; {RESTORE}",
    ),
    "meta.properties is a directory": Case(
        lambda node: _in_place_of(node.data / "meta.properties", Path.mkdir), f"{META}: Is a directory"
    ),
    "meta.properties is missing": Case(
        lambda node: (node.data / "meta.properties").unlink(),
        "DATA: not formatted, although MORE is. .* check that its disk is mounted and that log.dirs",
    ),
    "nothing is formatted": Case(
        lambda node: [(one / "meta.properties").unlink() for one in (node.data, node.more)],
        "DATA, MORE: not formatted; run `barnabas storage format .*` once",
    ),
    "data without an owner": Case(_data_of_nobody, "DATA, MORE: not formatted; .*"),
    "the directory is missing": Case(
        lambda node: _remove(node.data),
        "DATA: not formatted, although MORE is. .* check that its disk is mounted",
    ),
    "the directory is a file": Case(
        lambda node: _in_place_of(node.data, Path.touch), "DATA/meta.properties: Not a directory"
    ),
    "the port is in use": Case(
        _take_port,
        r"cannot listen on 127.0.0.1:\d+: the address is in use; stop the program that listens on it",
    ),
    "an address of another machine": Case(
        lambda node: node.write(
            listeners="PLAINTEXT://192.0.2.1:9092,CONTROLLER://127.0.0.1:0",
            advertised_listeners="PLAINTEXT://127.0.0.1:9092",
        ),
        "cannot listen on 192.0.2.1:9092: this machine has no such address",
    ),
    "a listener that is advertised and does not exist": Case(
        lambda node: node.write(advertised_listeners="INSIDE://127.0.0.1:9092"),
        "FILE: .*advertised.listeners",
    ),
    "an advertised address for everybody": Case(
        lambda node: node.write(advertised_listeners="PLAINTEXT://0.0.0.0:9092"),
        "FILE: .*advertised.listeners.*0.0.0.0",
    ),
    "an advertised listener that cannot be read": Case(
        lambda node: node.write(advertised_listeners="PLAINTEXT:/127.0.0.1"), "FILE: .*advertised.listeners"
    ),
    "two listeners on one port": Case(
        lambda node: node.write(listeners="PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9092"),
        "FILE: .*listeners",
    ),
    "a number that is none": Case(
        lambda node: node.write(num_partitions="many"), "FILE: .*num.partitions.*many"
    ),
    "a setting that does not exist": Case(
        lambda node: node.write("num.partition=3"), "FILE: .*num.partition.*num.partitions"
    ),
    "no log.dirs": Case(lambda node: node.write(log_dirs=""), "FILE: .*log.dirs"),
    "the root as a log directory": Case(lambda node: node.write(log_dirs="/"), "FILE: .*log.dirs"),
    "the settings cannot be read": Case(
        lambda node: _in_place_of(node.file, Path.mkdir), "FILE: Is a directory"
    ),
    "there are no settings": Case(lambda node: node.file.unlink(), "FILE: No such file"),
}


def refused(ended: Ended, node: Node, says: str) -> None:
    paths = {"DATA": node.data, "MORE": node.more, "FILE": node.file}
    for name, path in paths.items():
        says = says.replace(name, re.escape(str(path)))
    assert ended.code == 1
    assert ended.out == ""
    assert ended.err.count("\n") == 1, ended.err
    assert re.match(f"barnabas broker: (log directory )?{says}", ended.err), ended.err


@pytest.mark.parametrize("what", CASES)
def test_a_broker_that_cannot_start_says_why_in_one_line(what: str, node: Node) -> None:
    breaks, says = CASES[what]
    breaks(node)

    refused(node.start(), node, says)


def test_a_directory_that_another_broker_uses_is_refused(node: Node) -> None:
    with (node.data / ".lock").open("wb") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

        ended = node.start()

    refused(ended, node, "DATA is in use: another broker has locked .lock; stop that broker or use another")


@pytest.mark.parametrize("what", ["directory", "meta.properties"])
def test_a_path_without_permission_is_named(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Root may access everything, so for root the broker runs as another user."""
    with tempfile.TemporaryDirectory() as place:
        node = Node(Path(place))
        capsys.readouterr()
        path = node.data if what == "directory" else node.data / "meta.properties"
        for one in (node.root, *node.root.rglob("*")):
            one.chmod(0o755 if one.is_dir() else 0o644)
        path.chmod(0)
        (node.root / "stderr.txt").touch()
        identity = os.geteuid()
        if identity == 0:
            os.seteuid(65534)
        try:
            code = main(["broker", str(node.file)])
        finally:
            os.seteuid(identity)
        path.chmod(0o755)

    assert code == 1
    assert capsys.readouterr().err == f"barnabas broker: {node.data}/meta.properties: Permission denied\n"


def test_files_of_old_kafka_versions_do_not_prevent_a_start(node: Node) -> None:
    """Files that a ZooKeeper-based broker, or a migration, leaves behind."""
    (node.data / "replication-offset-checkpoint").write_text("")
    (node.data / "zookeeper_migration_done").write_text("")
    (node.data / "orders-0.1234567890abcdef1234567890abcdef-delete").mkdir()
    (node.data / "version-2").mkdir()

    with started(node.root / "stderr.txt", "broker", str(node.file)) as broker:
        broker.ready()
        assert broker.stop().code == 0
    assert "zookeeper_migration_done: unknown entry, left untouched" in broker.err
    # By its name it could be a partition.
    assert "stray log set aside tp=version-2" in broker.err
    assert "Traceback" not in broker.err


def test_a_damaged_second_directory_does_not_prevent_a_start(node: Node) -> None:
    """As in Kafka, a broker runs without a failed log directory, unless it is the metadata directory."""
    (node.more / "meta.properties").write_text("")

    with started(node.root / "stderr.txt", "broker", str(node.file)) as broker:
        broker.ready()
        assert broker.stop().code == 0
    assert f"log directory failed path={node.more}" in broker.err
    assert "Traceback" not in broker.err
