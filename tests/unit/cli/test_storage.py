"""`barnabas storage`: output and exit codes, as of Kafka 4.3.0's storage tool."""

import shutil
from pathlib import Path

import pytest

from barnabas.base.ids import parse_uuid
from barnabas.cli.main import main

CLUSTER_ID = "8UFBlDBzRM2WGJual5ztlg"
RECORDS = (
    "Bootstrap metadata: BootstrapMetadata(records=["
    "ApiMessageAndVersion(FeatureLevelRecord(name='metadata.version', featureLevel=25) at version 0), "
    "ApiMessageAndVersion(FeatureLevelRecord(name='group.version', featureLevel=1) at version 0), "
    "ApiMessageAndVersion(FeatureLevelRecord(name='transaction.version', featureLevel=2) at version 0)], "
    "metadataVersionLevel=25, source=format command)"
)


class Tool:
    """Runs the tool with a configuration in a temporary directory."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self.logs = root / "logs"
        self._capsys = capsys
        self.config = root / "server.properties"
        self.configure()

    def configure(self, **changes: str | None) -> None:
        settings: dict[str, str | None] = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": "1@127.0.0.1:9093",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.logs),
            **{name.replace("_", "."): value for name, value in changes.items()},
        }
        lines = [f"{name}={value}\n" for name, value in settings.items() if value is not None]
        self.config.write_text("".join(lines))

    def run(self, *words: str) -> tuple[int, str, str]:
        code = main(["storage", *words])
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err

    def format(self, *words: str, cluster_id: str = CLUSTER_ID) -> tuple[int, str, str]:
        return self.run("format", "-t", cluster_id, "-c", str(self.config), *words)

    def info(self) -> tuple[int, str, str]:
        return self.run("info", "--config", str(self.config))


@pytest.fixture
def tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Tool:
    return Tool(tmp_path, capsys)


def test_formatting_prints_records_and_directories(tool: Tool) -> None:
    code, out, err = tool.format("-r", "4.0")

    assert (code, err) == (0, "")
    assert out == f"{RECORDS}\nFormatting metadata directory {tool.logs} with metadata.version 4.0-IV3.\n"
    assert sorted(path.name for path in tool.logs.iterdir()) == [
        ".lock",
        "bootstrap.checkpoint",
        "meta.properties",
        "recovery-point-offset-checkpoint",
    ]


def test_formatting_twice_fails_without_ignore_formatted(tool: Tool) -> None:
    tool.format()
    before = (tool.logs / "meta.properties").read_bytes()

    code, out, err = tool.format()

    assert (code, out) == (1, "")
    assert f"Log directory {tool.logs} is already formatted. Use --ignore-formatted to ignore this" in err
    assert tool.format("-g") == (0, "All of the log directories are already formatted.\n", "")
    assert (tool.logs / "meta.properties").read_bytes() == before


def test_a_directory_of_another_cluster_or_node_is_an_error(tool: Tool) -> None:
    tool.format()

    code, _, err = tool.format("-g", cluster_id="AAAAlDBzRM2WGJual5ztlg")
    assert code == 1
    assert (
        f"Invalid cluster.id in: {tool.logs}/meta.properties. "
        f"Expected AAAAlDBzRM2WGJual5ztlg, but read {CLUSTER_ID}\n"
    ) in err

    tool.configure(node_id="2", controller_quorum_voters="2@127.0.0.1:9093")
    code, _, err = tool.format("-g")
    assert (code, "Invalid node.id in: " in err) == (1, True)


def test_only_unformatted_directories_are_formatted(tool: Tool) -> None:
    tool.format()
    tool.configure(log_dirs=f"{tool.logs},{tool.root}/more")

    assert tool.format()[0] == 1
    assert not (tool.root / "more").exists()
    code, out, _ = tool.format("--ignore-formatted")

    assert code == 0
    assert f"Formatting data directory {tool.root}/more with metadata.version 4.3-IV0.\n" in out
    assert str(tool.logs) not in out


def test_a_copied_directory_is_detected(tool: Tool) -> None:
    tool.format()
    shutil.copytree(tool.logs, tool.root / "copy")
    tool.configure(log_dirs=f"{tool.logs},{tool.root}/copy,{tool.root}/new")

    code, out, err = tool.format("-g")

    assert (code, out) == (1, "")
    assert "one is a copy of the other" in err


def test_a_separate_metadata_directory_is_formatted(tool: Tool) -> None:
    tool.configure(metadata_log_dir=f"{tool.root}/meta")

    _, out, _ = tool.format()

    assert f"Formatting metadata directory {tool.root}/meta with" in out
    assert f"Formatting data directory {tool.logs} with" in out


def test_a_file_in_place_of_a_directory_is_ignored_unless_it_is_the_only_one(tool: Tool) -> None:
    tool.logs.write_text("a file")
    ignored = f"I/O error trying to read log directory {tool.logs}. Ignoring...\n"

    assert tool.format() == (1, ignored, "barnabas storage: No available log directories to format.\n")

    tool.configure(log_dirs=f"{tool.logs},{tool.root}/more")
    code, out, _ = tool.format()
    assert (code, out.startswith(ignored)) == (0, True)


def test_info_of_a_formatted_directory(tool: Tool) -> None:
    tool.format()
    meta = dict(line.split("=") for line in (tool.logs / "meta.properties").read_text().splitlines()[2:])

    assert tool.info() == (
        0,
        f"Found log directory:\n  {tool.logs}\n\n"
        f"Found metadata: {{cluster.id={CLUSTER_ID}, directory.id={meta['directory.id']}, "
        "node.id=1, version=1}\n\n",
        "",
    )


def test_info_prints_problems(tool: Tool) -> None:
    missing = f"Found problem:\n  {tool.logs} does not exist\n\n"
    assert tool.info() == (1, missing, "")

    tool.logs.mkdir()
    found = f"Found log directory:\n  {tool.logs}\n\nFound problem:\n  "
    assert tool.info() == (1, f"{found}{tool.logs} is not formatted.\n\n", "")

    meta = tool.logs / "meta.properties"
    meta.write_text("version=1\nnode.id=1\n")
    code, out, err = tool.info()
    assert (code, err) == (1, "")
    assert out.startswith(f"{found}Error loading {meta}: cluster.id is missing; restore the file")


def test_info_reports_directories_of_different_owners(tool: Tool) -> None:
    for name, cluster_id, node_id in (("a", "one", 1), ("b", "two", 1), ("c", "one", 2)):
        (tool.root / name).mkdir()
        text = f"version=1\nnode.id={node_id}\ncluster.id={cluster_id}\n"
        (tool.root / name / "meta.properties").write_text(text)
    tool.configure(log_dirs=",".join(str(tool.root / name) for name in "abc"))

    code, out, _ = tool.info()

    assert code == 1
    assert "Found metadata: {cluster.id=one, node.id=1, version=1}\n" in out
    assert out.endswith(
        "Found problems:\n"
        "  Mismatched cluster IDs between storage directories.\n"
        "  Mismatched node IDs between storage directories.\n\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--standalone"], "You cannot specify controller.quorum.voters and format the node with"),
        (["-I", "1@a:1:JEXY6aqzQY-32P5TStzaFg"], "You cannot specify controller.quorum.voters"),
        (
            ["--add-scram", "SCRAM-SHA-256=[name=alice,password=secret]"],
            "SCRAM credentials are not built yet",
        ),
        (["-f", "group.version"], "Can't parse feature=level string group.version: equals sign not found."),
        (["-f", "group.version=x"], "unable to parse x as a short."),
        (["-f", "group.version=99999"], "unable to parse 99999 as a short."),
        (["-f", "foo=1"], "Unsupported feature: foo."),
        (["-r", "9.9"], "Unknown metadata.version '9.9'."),
    ],
)
def test_invalid_options_fail_and_create_nothing(tool: Tool, words: list[str], said: str) -> None:
    code, out, err = tool.format(*words)

    assert (code, out) == (1, "")
    assert said in err
    assert "secret" not in err
    assert not tool.logs.exists()


def test_formatting_without_fixed_voters_needs_an_option(tool: Tool) -> None:
    tool.configure(controller_quorum_voters=None, controller_quorum_bootstrap_servers="127.0.0.1:9093")

    code, _, err = tool.format()
    assert (code, "specify --no-initial-controllers" in err) == (1, True)
    code, _, err = tool.format("--standalone")
    assert (code, "which are not built yet; set controller.quorum.voters=" in err) == (1, True)
    assert not tool.logs.exists()
    assert tool.format("--no-initial-controllers")[0] == 0


def test_an_empty_cluster_id_is_refused(tool: Tool) -> None:
    assert tool.format(cluster_id="")[0] == 1


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["frob"],
        ["info"],
        ["info", "--frob"],
        ["format", "-t", "x"],
        ["format", "-c", "x"],
        ["format", "-sN"],
    ],
)
def test_misuse_exits_with_1_as_kafkas_tool_does(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["storage", *words])

    assert ended.value.code == 1
    assert "usage: barnabas storage" in capsys.readouterr().err


def test_random_uuid_prints_a_valid_id(tool: Tool) -> None:
    code, out, _ = tool.run("random-uuid")

    assert code == 0
    assert len(parse_uuid(out.strip())) == 16
    assert tool.run("random-uuid")[1] != out


def test_the_levels_of_a_release(tool: Tool) -> None:
    assert tool.run("version-mapping", "-r", "3.9")[1] == (
        "metadata.version=21 (3.9)\nkraft.version=1\ntransaction.version=0\ngroup.version=0\n"
        "eligible.leader.replicas.version=0\nshare.version=0\nstreams.version=0\n"
    )
    assert tool.run("version-mapping")[1].startswith("metadata.version=30 (4.3-IV0)\nkraft.version=1\n")


def test_the_dependencies_of_levels(tool: Tool) -> None:
    asked = ["-f", "eligible.leader.replicas.version=1", "-f", "group.version=1", "-f", "metadata.version=30"]

    assert tool.run("feature-dependencies", *asked)[1] == (
        "eligible.leader.replicas.version=1 requires:\n    metadata.version=23 (4.0-IV1)\n"
        "group.version=1 has no dependencies.\nmetadata.version=30 (4.3-IV0) has no dependencies.\n"
    )
    for bad, said in (
        ("group.version", "Invalid feature format: group.version. Expected format: 'feature=version'"),
        ("group.version=x", "Invalid version format: x for feature group.version"),
        ("x=1", "Unknown feature: x"),
        ("metadata.version=1", "Unknown metadata.version 1"),
    ):
        code, _, err = tool.run("feature-dependencies", "-f", bad)
        assert (code, said in err) == (1, True)
