"""DescribeLogDirs (key 35), versions 1-5.

Supported: every log directory with the requested logs (null means all), their sizes, and the size and free
space of the disk. An offline directory is listed with only an error.
Not supported: future replicas and cordoned directories, because logs cannot be moved between directories yet.
The metadata log is not listed, because it is not a partition of this broker.
v2 flexible; v3 error_code; v4 total_bytes, usable_bytes; v5 is_cordoned.
"""

import logging
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Final, TypeAlias

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from barnabas.server.requests.api import Answer, Api, Context
from barnabas.server.requests.slices import AT_ONCE
from barnabas.server.services import Services
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.files import FileSystem

logger = logging.getLogger(__name__)

# Disk size of a failed directory.
_UNKNOWN: Final = -1

Asked: TypeAlias = list[DescribableLogDirTopic] | None
Wanted: TypeAlias = Collection[tuple[str, int]] | None


def handle(ctx: Context, request: Request) -> Answer:
    body: DescribeLogDirsRequest = request.body
    return _describe_all(ctx.broker, body.topics)


def _partitions(asked: Iterable[DescribableLogDirTopic]) -> Iterator[tuple[str, int]]:
    for topic in asked:
        for index in topic.partitions:
            yield topic.topic, index


async def _describe_all(broker: Services, asked: Asked) -> DescribeLogDirsResponse:
    wanted: Wanted = None
    if asked is not None:
        wanted = set(await broker.long_requests.collect(_partitions(asked)))
    directories = {directory.path: directory for directory in broker.logs.directories}
    return DescribeLogDirsResponse(
        results=[await _describe(broker, path, directories.get(path), wanted) for path in broker.logs.paths]
    )


async def _describe(
    broker: Services, path: str, directory: LogDirectory | None, wanted: Wanted
) -> DescribeLogDirsResult:
    if directory is None or directory.offline is not None:
        return _failed(path)
    try:
        total, usable = await broker.executor.run(partial(_room, broker.logs.fs, path))
    except OSError as error:
        logger.error("cannot describe log directory path=%s error=%s", path, error)
        return _failed(path)
    return DescribeLogDirsResult(
        log_dir=path,
        topics=await _topics(broker, directory, wanted),
        total_bytes=total,
        usable_bytes=usable,
    )


def _room(fs: FileSystem, path: str) -> tuple[int, int]:
    """The disk's size and free space. Runs in the executor, because a failing disk may block."""
    return fs.total_bytes(path), fs.free_bytes(path)


async def _topics(broker: Services, directory: LogDirectory, wanted: Wanted) -> list[DescribeLogDirsTopic]:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for number, log in enumerate(list(broker.logs.logs_in(directory)), 1):
        if number % AT_ONCE == 0:
            await broker.long_requests.pause()
        if wanted is not None and log.tp not in wanted:
            continue
        topic = topics.get(log.tp.topic)
        if topic is None:
            topic = topics[log.tp.topic] = DescribeLogDirsTopic(name=log.tp.topic, partitions=[])
        # offset_lag is the lag of a replica being moved to another directory, which is not supported.
        topic.partitions.append(
            DescribeLogDirsPartition(partition_index=log.tp.partition, partition_size=log.size, offset_lag=0)
        )
    return list(topics.values())


def _failed(path: str) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(
        error_code=ErrorCode.KAFKA_STORAGE_ERROR,
        log_dir=path,
        total_bytes=_UNKNOWN,
        usable_bytes=_UNKNOWN,
    )


def refuse(body: DescribeLogDirsRequest, version: int, code: ErrorCode) -> object:
    # Before v3 there is no error_code; clients treat an empty list of directories as an error.
    return DescribeLogDirsResponse(error_code=code)


API = Api(
    ApiKey.DESCRIBE_LOG_DIRS,
    versions=range(1, 6),
    handle=handle,
    refuse=refuse,
    pauses=True,
    long_lists=(("results", "topics", "partitions"),),
)
