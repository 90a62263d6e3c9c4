"""Contents of log directories: DescribeLogDirs at each broker."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.base.values import value
from barnabas.client.admin.call import Call, Outcome, check
from barnabas.client.admin.leaders import by_topic
from barnabas.client.errors import ClientError, Refused, refused
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)

_UNKNOWN: Final = -1


@value(kw_only=True)
class ReplicaLog:
    """One log. A future log is being moved here from another directory of the broker."""

    size_bytes: int
    offset_lag: int
    future: bool


@value(kw_only=True)
class LogDir:
    """One log directory, or its error if it is offline. Sizes are None if not returned."""

    path: str
    error: Refused | None
    total_bytes: int | None
    usable_bytes: int | None
    cordoned: bool
    replicas: Mapping[TopicPartition, ReplicaLog]


async def describe(
    call: Call, brokers: Iterable[int] | None, tps: Iterable[TopicPartition] | None
) -> dict[int, Outcome[dict[str, LogDir]]]:
    """Return log directories by broker and path. None: all brokers, all partitions."""
    topics = None
    if tps is not None:
        topics = [
            DescribableLogDirTopic(topic=topic, partitions=partitions) for topic, partitions in by_topic(tps)
        ]
    request = DescribeLogDirsRequest(topics=topics)

    async def ask(broker: int) -> Outcome[dict[str, LogDir]]:
        try:
            answer: DescribeLogDirsResponse = await call.ask(
                ApiKey.DESCRIBE_LOG_DIRS, lambda _: request, broker
            )
            check(answer.error_code, about=f"broker {broker}")
        except ClientError as error:
            return error
        return {entry.log_dir: _log_dir(entry) for entry in answer.results}

    async def attempt(pending: list[int]) -> dict[int, Outcome[dict[str, LogDir]]]:
        return dict(zip(pending, await asyncio.gather(*map(ask, pending)), strict=True))

    if brokers is None:
        brokers = await call.single("the brokers", lambda: _all_brokers(call))
    return await call.settle("DESCRIBE_LOG_DIRS", brokers, attempt)


async def _all_brokers(call: Call) -> list[int]:
    return sorted((await call.cluster.refresh()).nodes)


def _log_dir(entry: DescribeLogDirsResult) -> LogDir:
    replicas = {
        TopicPartition(topic.name, row.partition_index): ReplicaLog(
            size_bytes=row.partition_size, offset_lag=row.offset_lag, future=row.is_future_key
        )
        for topic in entry.topics
        for row in topic.partitions
    }
    failed = entry.error_code != ErrorCode.NONE
    return LogDir(
        path=entry.log_dir,
        error=refused(entry.error_code, about=f"log directory {entry.log_dir}") if failed else None,
        total_bytes=None if entry.total_bytes == _UNKNOWN else entry.total_bytes,
        usable_bytes=None if entry.usable_bytes == _UNKNOWN else entry.usable_bytes,
        cordoned=entry.is_cordoned,
        replicas=replicas,
    )
