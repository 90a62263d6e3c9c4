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

_NOT_TOLD: Final = -1


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
        return {told.log_dir: _log_dir(told) for told in answer.results}

    async def attempt(pending: list[int]) -> dict[int, Outcome[dict[str, LogDir]]]:
        return dict(zip(pending, await asyncio.gather(*map(ask, pending)), strict=True))

    if brokers is None:
        brokers = await call.single("the brokers", lambda: _all_brokers(call))
    return await call.settle("DESCRIBE_LOG_DIRS", brokers, attempt)


async def _all_brokers(call: Call) -> list[int]:
    return sorted((await call.cluster.refresh()).nodes)


def _log_dir(told: DescribeLogDirsResult) -> LogDir:
    replicas = {
        TopicPartition(topic.name, row.partition_index): ReplicaLog(
            size_bytes=row.partition_size, offset_lag=row.offset_lag, future=row.is_future_key
        )
        for topic in told.topics
        for row in topic.partitions
    }
    failed = told.error_code != ErrorCode.NONE
    return LogDir(
        path=told.log_dir,
        error=refused(told.error_code, about=f"log directory {told.log_dir}") if failed else None,
        total_bytes=None if told.total_bytes == _NOT_TOLD else told.total_bytes,
        usable_bytes=None if told.usable_bytes == _NOT_TOLD else told.usable_bytes,
        cordoned=told.is_cordoned,
        replicas=replicas,
    )
