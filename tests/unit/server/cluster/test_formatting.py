"""Formatting: all directories or none, with one identity, and never over existing data."""

import errno
import random
from contextlib import suppress

import pytest

from barnabas.base.ids import Uuid
from barnabas.controller.bootstrap import bootstrap_records
from barnabas.raft.snapshots import read_bootstrap
from barnabas.server.cluster.formatting import (
    AlreadyFormatted,
    MetadataMissing,
    NotFormatted,
    check_unused,
    directories_of,
    format_directories,
    format_storage,
    identities_for,
    identity_of,
    metadata_lock,
    new_id,
    read_identity,
    survey,
)
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.sim.disk import PowerLoss, SimDisk
from barnabas.storage.directory.log_directory import DirectoryInUse, open_directory
from barnabas.storage.directory.meta_properties import MetaProperties, WrongDirectory, write_meta_properties
from support.brokers import CLUSTER_ID, broker_settings

NOW_MS = 1_700_000_000_000
PATHS = ("/a", "/b", "/c")


def disk() -> SimDisk:
    return SimDisk(random.Random(1))


def three_directories() -> BrokerSettings:
    return broker_settings({"log.dirs": ",".join(PATHS), "metadata.log.dir": "/b"})


def form(fs: SimDisk, settings: BrokerSettings, seed: int = 2) -> list[str]:
    return format_storage(fs, settings, cluster_id=CLUSTER_ID, rng=random.Random(seed), now_ms=NOW_MS)


def meta(cluster_id: str = CLUSTER_ID, node_id: int = 1, number: int = 1) -> MetaProperties:
    return MetaProperties(
        cluster_id=cluster_id, node_id=node_id, directory_id=Uuid(bytes(15) + bytes([100 + number]))
    )


def test_every_directory_gets_the_identity_its_own_id_and_the_bootstrap_records() -> None:
    fs = disk()

    assert form(fs, three_directories()) == ["/b", "/a", "/c"]

    found = survey(fs, PATHS)
    assert (found.empty, found.failed) == ([], {})
    assert {(one.cluster_id, one.node_id) for one in found.formatted.values()} == {(CLUSTER_ID, 1)}
    assert len({one.directory_id for one in found.formatted.values()}) == 3
    assert all(read_bootstrap(fs, path) == bootstrap_records() for path in PATHS)


def test_a_formatted_directory_opens_with_the_same_id() -> None:
    fs = disk()
    form(fs, three_directories())
    known = survey(fs, PATHS).formatted["/a"]

    opened = open_directory(
        fs, "/a", cluster_id=CLUSTER_ID, node_id=1, new_id=Uuid(b"another one here"), now_ms=NOW_MS
    )

    assert opened.id == known.directory_id
    # Its checkpoint is there from the start: without it, everything would have been taken for unflushed.
    assert opened.checkpoints.recovery_points_known


def test_only_unformatted_directories_are_formatted() -> None:
    fs = disk()
    fs.make_directory("/b")
    write_meta_properties(fs, "/b", meta(), now_ms=NOW_MS)

    assert form(fs, three_directories()) == ["/a", "/c"]
    assert read_bootstrap(fs, "/b") is None


def test_a_formatted_directory_is_not_formatted_again_and_stays_as_it_is() -> None:
    fs = disk()
    form(fs, three_directories())
    before = survey(fs, PATHS)
    again = identities_for(["/new", "/a"], cluster_id="other", node_id=2, rng=random.Random(3))

    with pytest.raises(AlreadyFormatted, match="/a is already formatted"):
        format_directories(fs, again, [], now_ms=NOW_MS)

    assert survey(fs, PATHS) == before
    assert survey(fs, ["/new"]).empty == ["/new"]


def test_partition_data_of_an_unknown_owner_is_not_claimed() -> None:
    fs = disk()
    fs.make_directory("/a/orders-0")

    with pytest.raises(WrongDirectory, match=r"/a holds orders-0, but no meta\.properties"):
        form(fs, three_directories())

    assert survey(fs, PATHS).formatted == {}


def test_a_directory_in_use_is_not_formatted() -> None:
    fs = disk()
    fs.make_directory("/c")
    held = fs.lock("/c/.lock")

    with pytest.raises(DirectoryInUse, match="/c is in use"):
        form(fs, three_directories())
    with pytest.raises(DirectoryInUse):
        check_unused(fs, "/c")

    assert survey(fs, PATHS).formatted == {}
    held.close()
    check_unused(fs, "/c")
    assert len(form(fs, three_directories())) == 3


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["create", "write", "sync", "rename"])
def test_if_one_disk_fails_none_is_formatted(path: str, kind: str) -> None:
    fs = disk()
    for one in PATHS:
        fs.make_directory(one)
        fs.lock(f"{one}/.lock").close()
    fs.fail(path, [kind], errno=errno.ENOSPC)  # type: ignore[list-item]

    with pytest.raises(OSError, match="No space"):
        form(fs, three_directories())

    assert survey(fs, PATHS).empty == list(PATHS)
    assert [entry.name for one in PATHS for entry in fs.entries(one)] == [".lock"] * 3
    assert len(form(fs, three_directories())) == 3


@pytest.mark.parametrize("seed", range(60))
def test_after_a_power_loss_a_directory_is_formatted_with_everything_or_is_not(seed: int) -> None:
    rng = random.Random(seed)
    fs = SimDisk(rng)
    fs.crash_after(rng.randint(1, 60))

    with suppress(PowerLoss):
        form(fs, three_directories())
    fs.crash()

    found = survey(fs, PATHS)
    assert found.failed == {}
    for path in found.formatted:
        assert read_bootstrap(fs, path) == bootstrap_records()
    # The rest can be formatted, and belongs to the same cluster.
    form(fs, three_directories(), seed=3)
    assert identity_of(fs, three_directories()) is not None


def test_a_separate_metadata_directory_is_locked_while_the_node_runs() -> None:
    fs = disk()
    apart = broker_settings({"log.dirs": "/a", "metadata.log.dir": "/b"})
    form(fs, apart)

    with metadata_lock(fs, apart):
        with pytest.raises(DirectoryInUse):
            check_unused(fs, "/b")
        check_unused(fs, "/a")
    check_unused(fs, "/b")

    # Where data is in it too, the log holds it.
    with metadata_lock(fs, three_directories()):
        check_unused(fs, "/b")


def test_new_directories_have_no_identity() -> None:
    assert identity_of(disk(), three_directories()) is None
    assert read_identity(disk(), PATHS) is None
    assert "barnabas storage format" in str(NotFormatted(["/a"]))


def test_a_missing_metadata_directory_prevents_a_start() -> None:
    fs = disk()
    fs.make_directory("/a")
    write_meta_properties(fs, "/a", meta(), now_ms=NOW_MS)

    with pytest.raises(MetadataMissing, match="/b: not formatted, although /a is"):
        identity_of(fs, three_directories())


def test_directories_of_two_nodes_are_refused() -> None:
    fs = disk()
    form(fs, three_directories())
    write_meta_properties(fs, "/c", meta(node_id=2), now_ms=NOW_MS)

    with pytest.raises(WrongDirectory, match="node 2"):
        identity_of(fs, three_directories())


def test_an_unreadable_data_directory_does_not_hide_the_identity() -> None:
    fs = disk()
    form(fs, three_directories())
    fs.fail("/a", ["read"], errno=errno.EIO)

    identity = identity_of(fs, three_directories())

    assert identity is not None
    assert identity.cluster_id == CLUSTER_ID


def test_the_metadata_directory_comes_first() -> None:
    assert directories_of(three_directories()) == ["/b", "/a", "/c"]
    assert directories_of(broker_settings()) == ["/data"]


def test_ids_do_not_look_like_options_and_are_not_reserved() -> None:
    class Dice(random.Random):
        def __init__(self) -> None:
            super().__init__(1)
            self.thrown = [bytes([62 << 2]) + bytes(15), bytes(16), b"\x01" + bytes(15)]

        def randbytes(self, n: int) -> bytes:
            return self.thrown.pop(0)

    assert new_id(Dice()) == b"\x01" + bytes(15)
