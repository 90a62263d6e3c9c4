"""partition.metadata, meta.properties and the marker of a clean shutdown."""

from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.base.ids import Uuid, parse_uuid
from barnabas.storage.directory.clean_shutdown import (
    CleanShutdown,
    read_clean_shutdown,
    remove_clean_shutdown,
    write_clean_shutdown,
)
from barnabas.storage.directory.meta_properties import (
    MetaProperties,
    WrongDirectory,
    check_owner,
    check_together,
    is_reserved,
    read_meta_properties,
    write_meta_properties,
)
from barnabas.storage.directory.partition_metadata import read_partition_metadata, write_partition_metadata
from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.errors import CorruptFile
from support.kafka.sample import sample_files

FS = DiskFileSystem()
META = MetaProperties(
    cluster_id="8UFBlDBzRM2WGJual5ztlg",
    node_id=1,
    directory_id=parse_uuid("evhWL3MMohnNdi6Ihb2JTw"),
)
OTHER_ID = parse_uuid("Sq0hT0khSbGdQ_AUmiTtLA")


@pytest.mark.parametrize(
    "path", [path for path in sample_files() if path.endswith("partition.metadata")], ids=lambda path: path
)
def test_partition_metadata_of_kafka_is_written_back_byte_for_byte(path: str, tmp_path: Path) -> None:
    content = sample_files()[path]
    (tmp_path / "partition.metadata").write_bytes(content)

    topic_id = read_partition_metadata(FS, str(tmp_path))
    assert topic_id is not None
    (tmp_path / "partition.metadata").unlink()
    write_partition_metadata(FS, str(tmp_path), topic_id)

    assert (tmp_path / "partition.metadata").read_bytes() == content


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\nlater: 1\n"])
def test_partition_metadata_of_a_later_version_is_read(end: bytes, tmp_path: Path) -> None:
    (tmp_path / "partition.metadata").write_bytes(b"version: 3\ntopic_id: Sq0hT0khSbGdQ_AUmiTtLA" + end)

    assert read_partition_metadata(FS, str(tmp_path)) == OTHER_ID


def test_a_directory_without_partition_metadata_has_no_topic_id(tmp_path: Path) -> None:
    assert read_partition_metadata(FS, str(tmp_path)) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 0\n",
        b"version: -1\ntopic_id: Sq0hT0khSbGdQ_AUmiTtLA",
        b"version: 0\ntopic_id: ",
        b"version: 0\ntopic_id: Sq0hT0khSbGdQ_AUmiTtL",
        b"version: 0\ntopic_id: Sq0hT0khSbGdQ_AUmiTtLA more",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: \xff\xff",
        bytes(43),
    ],
)
def test_damaged_partition_metadata_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "partition.metadata").write_bytes(content)

    with pytest.raises(CorruptFile, match=r"partition\.metadata: "):
        read_partition_metadata(FS, str(tmp_path))


def test_meta_properties_of_kafka_are_written_back_byte_for_byte(tmp_path: Path) -> None:
    content = sample_files()["meta.properties"]
    (tmp_path / "meta.properties").write_bytes(content)

    meta = read_meta_properties(FS, str(tmp_path))
    assert meta == META
    write_meta_properties(FS, str(tmp_path), meta, now_ms=1_794_709_942_000)

    assert (tmp_path / "meta.properties").read_bytes() == content


def test_unknown_meta_properties_are_preserved(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_bytes(b"version=1\nnode.id=5\nnew\\ thing:a=b\ncluster.id=c\nx=\n")

    meta = read_meta_properties(FS, str(tmp_path))
    assert meta is not None
    write_meta_properties(FS, str(tmp_path), meta, now_ms=0)

    assert meta.directory_id is None
    assert meta.unknown == (("new thing", "a=b"), ("x", ""))
    assert read_meta_properties(FS, str(tmp_path)) == meta


def test_a_directory_that_was_never_formatted_has_no_meta_properties(tmp_path: Path) -> None:
    assert read_meta_properties(FS, str(tmp_path)) is None


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "the file is empty"),
        (b"\xff\xfe\0", "version is missing"),
        (b"version=2\nnode.id=1\ncluster.id=c\n", "version is '2'"),
        (b"version=one\nnode.id=1\ncluster.id=c\n", "version is 'one'"),
        (b"version=1\nnode.id=1\n", "cluster.id is missing"),
        (b"version=1\ncluster.id=c\n", "node.id is ''"),
        (b"version=1\nnode.id=-1\ncluster.id=c\n", "node.id is '-1'"),
        (b"version=1\nnode.id=2147483648\ncluster.id=c\n", "node.id is '2147483648'"),
        (b"version=1\nnode.id=1\ncluster.id=c\ndirectory.id=x\n", "uuid 'x'"),
        (b"version=1\nnode.id=1\ncluster.id=c\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n", "is reserved"),
        (b"version=1\nnode.id=1\ncluster.id=\\u12\n", "line 3"),
    ],
)
def test_damaged_meta_properties_are_refused(content: bytes, what: str, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_bytes(content)

    with pytest.raises(CorruptFile) as raised:
        read_meta_properties(FS, str(tmp_path))

    assert what in str(raised.value)


@pytest.mark.parametrize("content", [b"version=0\nbroker.id=1\n", b"broker.id=1\ncluster.id=c\n"])
def test_a_directory_from_the_time_of_zookeeper_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_bytes(content)

    with pytest.raises(WrongDirectory, match="version 0"):
        read_meta_properties(FS, str(tmp_path))


def test_a_directory_of_another_node_or_cluster_is_refused() -> None:
    check_owner("/data", META, cluster_id=META.cluster_id, node_id=1)

    with pytest.raises(WrongDirectory, match="/data belongs to node 1, not to node 2"):
        check_owner("/data", META, cluster_id=META.cluster_id, node_id=2)
    with pytest.raises(WrongDirectory, match="/data belongs to cluster 8UFBlDBzRM2WGJual5ztlg, not to mine"):
        check_owner("/data", META, cluster_id="mine", node_id=1)


def test_directories_of_one_node_must_agree() -> None:
    second = replace(META, directory_id=OTHER_ID)
    check_together({})
    check_together({"/a": META, "/b": second, "/c": replace(META, directory_id=None)})
    check_together({"/a": replace(META, directory_id=None), "/b": replace(META, directory_id=None)})

    with pytest.raises(WrongDirectory, match="/b has the id evhWL3MMohnNdi6Ihb2JTw, but so has /a"):
        check_together({"/a": META, "/b": META})
    with pytest.raises(
        WrongDirectory, match=r"/b belongs to node 2 in cluster 8UFB.*, but /a belongs to node 1"
    ):
        check_together({"/a": META, "/b": replace(second, node_id=2)})
    with pytest.raises(WrongDirectory, match="/b belongs to node 1 in cluster other"):
        check_together({"/a": META, "/b": replace(second, cluster_id="other")})


def test_the_first_hundred_ids_are_reserved() -> None:
    assert is_reserved(Uuid((0).to_bytes(16, "big")))
    assert is_reserved(Uuid((99).to_bytes(16, "big")))
    assert not is_reserved(Uuid((100).to_bytes(16, "big")))
    assert not is_reserved(Uuid((1 << 64).to_bytes(16, "big")))


def test_the_mark_of_a_clean_shutdown_is_kafka_s(tmp_path: Path) -> None:
    content = sample_files()[".kafka_cleanshutdown"]
    (tmp_path / ".kafka_cleanshutdown").write_bytes(content)

    assert read_clean_shutdown(FS, str(tmp_path)) == CleanShutdown(broker_epoch=12)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    write_clean_shutdown(FS, str(tmp_path), 12)

    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == content


def test_a_mark_is_taken_away_and_may_be_missing(tmp_path: Path) -> None:
    write_clean_shutdown(FS, str(tmp_path), 5)

    remove_clean_shutdown(FS, str(tmp_path))
    assert read_clean_shutdown(FS, str(tmp_path)) is None

    remove_clean_shutdown(FS, str(tmp_path))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"12",
        b"{}",
        b'{"version":0,"brokerEpoch":null}',
        b'{"version":0,"brokerEpoch":true}',
        b'{"version":"x","brokerEpoch":1}',
        b'{"version":0,"brokerEpoch":9223372036854775808}',
        b'{"version":0,"brokerEpoch":' + b"1" * 5000 + b"}",
        b'{"brokerEpoch":' + b"1" * 4000 + b"}",
        b"[" * 4000,
        b"\xff\xfe",
    ],
)
def test_a_damaged_clean_shutdown_file_has_no_epoch(content: bytes, tmp_path: Path) -> None:
    (tmp_path / ".kafka_cleanshutdown").write_bytes(content)

    assert read_clean_shutdown(FS, str(tmp_path)) == CleanShutdown(broker_epoch=None)


def test_additions_of_later_versions_to_the_marker_are_ignored(tmp_path: Path) -> None:
    (tmp_path / ".kafka_cleanshutdown").write_bytes(b'{"version":7,"brokerEpoch":-1,"more":[1]}')

    assert read_clean_shutdown(FS, str(tmp_path)) == CleanShutdown(broker_epoch=-1)
