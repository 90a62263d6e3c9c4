"""Sends requests about partitions to their leaders.

Every attempt looks the leaders up again, with one request for all topics. An unreachable broker affects only
its own partitions.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any, TypeAlias, TypeVar

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.call import Call, NegotiatedApi, Outcome
from barnabas.client.errors import ClientError, Refused, UnknownTopic
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode

V = TypeVar("V")

Make: TypeAlias = Callable[[NegotiatedApi, list[TopicPartition]], object]
Read: TypeAlias = Callable[[Any], Mapping[TopicPartition, Outcome[V]]]


async def ask_leaders(
    call: Call,
    key: ApiKey,
    wanted: Iterable[TopicPartition],
    make: Make,
    read: Read[V],
    *,
    node: int | None = None,
) -> dict[TopicPartition, Outcome[V]]:
    """Ask the leaders of partitions, or only the broker `node`.

    `make` builds the request for some partitions, `read` parses a response.
    """

    async def attempt(pending: list[TopicPartition]) -> dict[TopicPartition, Outcome[V]]:
        shares, found = await shares_of(call, pending, node)
        asked: dict[int, asyncio.Task[Mapping[TopicPartition, Outcome[V]]]] = {}
        async with asyncio.TaskGroup() as group:
            for leader, share in shares.items():
                asked[leader] = group.create_task(_ask(call, key, leader, share, make, read))
        for task in asked.values():
            found.update(task.result())
        return found

    return await call.retry_items(key.name, wanted, attempt, retries_unknown=True)


async def _ask(
    call: Call, key: ApiKey, leader: int, share: list[TopicPartition], make: Make, read: Read[V]
) -> Mapping[TopicPartition, Outcome[V]]:
    try:
        return read(await call.ask(key, lambda api: make(api, share), leader))
    except ClientError as error:
        return dict.fromkeys(share, error)


async def shares_of(
    call: Call, pending: list[TopicPartition], node: int | None
) -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, Outcome[Any]]]:
    """Return the partitions by leader, and the errors of partitions without one."""
    if node is not None:
        return {node: pending}, {}
    known = await call.cluster.refresh({tp.topic for tp in pending})
    shares: dict[int, list[TopicPartition]] = {}
    failed: dict[TopicPartition, Outcome[Any]] = {}
    for tp in pending:
        topic = known.topics.get(tp.topic)
        if topic is None:
            code = known.errors.get(tp.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            failed[tp] = _unknown(tp) if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else _refused(tp, code)
        elif not 0 <= tp.partition < len(topic.partitions):
            failed[tp] = _unknown(tp)
        elif (leader := topic.leader_of(tp.partition)) is None:
            failed[tp] = _refused(tp, ErrorCode.LEADER_NOT_AVAILABLE)
        else:
            shares.setdefault(leader.leader, []).append(tp)
    return shares, failed


def _unknown(tp: TopicPartition) -> UnknownTopic:
    return UnknownTopic(about=str(tp), message="no such topic or partition")


def _refused(tp: TopicPartition, code: ErrorCode) -> Refused:
    return Refused(code, about=str(tp))


def by_topic(tps: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Group partitions by topic, as requests need them."""
    ordered = sorted(set(tps))
    return [(topic, [tp.partition for tp in group]) for topic, group in groupby(ordered, lambda tp: tp.topic)]
