"""DescribeLogDirs: logs by directory, and disk sizes."""

import os
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.messages.log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from barnabas.server.handlers.log_dirs import API
from barnabas.storage.disk import DiskFileSystem
from support.hosted import Hosted, hosted, image_of, partition_image
from support.log.logs import put
from support.log.managers import A, B, on_a_loop

STORAGE_ERROR = 56


async def ask(broker: Hosted, *wanted: tuple[str, int], version: int = 5, all_of_them: bool = False) -> Any:
    topics = [DescribableLogDirTopic(topic=name, partitions=[index]) for name, index in wanted]
    return await broker.ask(API, DescribeLogDirsRequest(topics=None if all_of_them else topics), version)


def listed(results: list[DescribeLogDirsResult]) -> dict[str, set[tuple[str, int, int]]]:
    """Directory -> (topic, partition, size)."""
    return {
        result.log_dir: {
            (topic.name, one.partition_index, one.partition_size)
            for topic in result.topics
            for one in topic.partitions
        }
        for result in results
    }


async def two_topics() -> Hosted:
    """Three partitions; a new one goes where there are fewest."""
    broker = await hosted(image_of({"orders": [partition_image()] * 2, "users": [partition_image()]}))
    put(broker.log("orders", 0), b"a" * 100)
    return broker


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
@on_a_loop
async def test_null_lists_all_logs_in_their_directories_with_their_sizes(version: int) -> None:
    broker = await two_topics()
    size = broker.log("orders", 0).size

    answer = await ask(broker, version=version, all_of_them=True)

    assert size > 100
    assert listed(answer.results) == {
        A: {("orders", 0, size), ("users", 0, 0)},
        B: {("orders", 1, 0)},
    }
    assert answer.error_code == 0


@on_a_loop
async def test_only_requested_partitions_but_all_directories_are_listed() -> None:
    broker = await two_topics()

    assert listed((await ask(broker)).results) == {A: set(), B: set()}
    some = await ask(broker, ("users", 0), ("users", 0), ("orders", 7), ("orders", -1), ("nobody", 0))
    assert listed(some.results) == {A: {("users", 0, 0)}, B: set()}


@on_a_loop
async def test_disk_sizes_are_included_from_version_4_on() -> None:
    broker = await two_topics()
    broker.disk.capacity = 1_000_000

    old = (await ask(broker, version=3)).results[0]
    new = (await ask(broker, version=4)).results[0]

    assert (old.total_bytes, old.usable_bytes) == (-1, -1)
    assert new.total_bytes == 1_000_000
    assert new.usable_bytes == 1_000_000 - broker.disk.used


@on_a_loop
async def test_an_offline_directory_is_listed_with_an_error() -> None:
    broker = await two_topics()
    broker.logs.fail_directory(broker.logs.directories[0], OSError("gone"))

    first, second = (await ask(broker, all_of_them=True)).results

    assert (first.log_dir, first.error_code, first.topics) == (A, STORAGE_ERROR, [])
    assert (first.total_bytes, first.usable_bytes) == (-1, -1)
    assert (second.log_dir, second.error_code) == (B, 0)
    assert [topic.name for topic in second.topics] == ["orders"]


@on_a_loop
async def test_a_directory_that_could_not_be_opened_is_listed_too() -> None:
    broker = Hosted(image_of({}))
    broker.disk.make_directory("/mnt")
    file = broker.disk.open(B, create=True)
    file.close()
    await broker.open()

    first, second = (await ask(broker, all_of_them=True)).results

    assert (first.log_dir, first.error_code) == (A, 0)
    assert (second.log_dir, second.error_code) == (B, STORAGE_ERROR)


def test_the_size_of_a_real_disk_is_read(tmp_path: Path) -> None:
    stat = os.statvfs(tmp_path)
    fs = DiskFileSystem()

    assert fs.total_bytes(str(tmp_path)) == stat.f_blocks * stat.f_frsize
    assert fs.free_bytes(str(tmp_path)) <= fs.total_bytes(str(tmp_path))
