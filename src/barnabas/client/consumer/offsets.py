"""Offset lookups: ListOffsets by end or timestamp, and OffsetForLeaderEpoch to validate positions."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.cluster import Cluster
from barnabas.client.deadline import Backoff, Deadline
from barnabas.client.errors import ClientError, Refused, refused
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

NO_OFFSET: Final = -1
_CONSUMER: Final = -1


class OffsetAt(NamedTuple):
    """An offset from ListOffsets, with the record's timestamp and leader epoch (-1: unknown)."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class EpochEnd(NamedTuple):
    """End offset of the largest epoch up to the requested one; -1 for both if there is none."""

    leader_epoch: int
    end_offset: int


async def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, committed: bool, deadline: Deadline
) -> dict[TopicPartition, OffsetAt | None]:
    """Return the offset of each partition for a timestamp, EARLIEST or LATEST; None if there is none.

    Look up leaders, and retry retriable errors until the deadline.
    """
    settings = cluster.settings
    backoff = Backoff(
        first_ms=max(1, settings.retry_backoff_ms),
        max_ms=settings.retry_backoff_max_ms,
        rng=cluster.ports.rng,
    )
    found: dict[TopicPartition, OffsetAt | None] = {}
    left, failures = dict(wanted), 0
    while left:
        by_leader = await cluster.by_leader(left, deadline)
        asked = [
            _ask_or_errors(
                cluster, node, {tp: left[tp] for tp in tps}, committed=committed, deadline=deadline
            )
            for node, tps in by_leader.items()
        ]
        last: ClientError | None = None
        for answer in await asyncio.gather(*asked):
            for tp, result in answer.items():
                if isinstance(result, ClientError):
                    last = result
                    _forget(cluster, tp, result)
                else:
                    found[tp] = result
                    del left[tp]
        if last is not None:
            failures += 1
            await _wait(backoff.wait_ms(failures), deadline, last)
    return found


async def _ask_or_errors(
    cluster: Cluster, node: int, wanted: Mapping[TopicPartition, int], *, committed: bool, deadline: Deadline
) -> Mapping[TopicPartition, OffsetAt | ClientError | None]:
    """Like ask_offsets(), but return the error for every partition if the broker cannot be reached."""
    timeout_ms = min(cluster.settings.request_timeout_ms, max(1.0, deadline.remaining_ms))
    try:
        return await ask_offsets(cluster, node, wanted, committed=committed, timeout_ms=timeout_ms)
    except ClientError as error:
        return dict.fromkeys(wanted, error)


def _forget(cluster: Cluster, tp: TopicPartition, error: ClientError) -> None:
    if not error.retriable:
        raise error
    led = cluster.known_leader(tp)
    if led is not None:
        cluster.forget_leader(tp, led[1])


async def _wait(wait_ms: float, deadline: Deadline, last: ClientError) -> None:
    if wait_ms >= deadline.remaining_ms:
        raise last
    await asyncio.sleep(wait_ms / 1000)


async def ask_offsets(
    cluster: Cluster,
    node: int,
    wanted: Mapping[TopicPartition, int],
    *,
    committed: bool,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, OffsetAt | Refused | None]:
    """Send ListOffsets to one leader, once. Errors are values of the result, also for missing rows."""
    timeout_ms = cluster.settings.request_timeout_ms if timeout_ms is None else timeout_ms
    request = ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=int(committed),
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=tp.partition,
                        current_leader_epoch=_epoch(cluster, tp),
                        timestamp=wanted[tp],
                    )
                    for tp in tps
                ],
            )
            for topic, tps in _by_topic(wanted)
        ],
        timeout_ms=int(timeout_ms),
    )
    answer = await (await cluster.connection(node)).ask(request, timeout_ms=timeout_ms)
    results: dict[TopicPartition, OffsetAt | Refused | None] = {}
    for topic in answer.topics:
        for each in topic.partitions:
            tp = TopicPartition(topic.name, each.partition_index)
            if each.error_code != ErrorCode.NONE:
                results[tp] = refused(each.error_code, about=f"partition {tp}")
            elif each.offset == NO_OFFSET:
                results[tp] = None
            else:
                results[tp] = OffsetAt(each.offset, each.timestamp, each.leader_epoch)
    return {tp: results[tp] if tp in results else _missing(tp) for tp in wanted}


async def ask_epoch_ends(
    cluster: Cluster, node: int, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, EpochEnd | Refused]:
    """Send OffsetForLeaderEpoch to one leader, once."""
    timeout_ms = cluster.settings.request_timeout_ms
    request = OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER,
        topics=[
            OffsetForLeaderTopic(
                topic=topic,
                partitions=[
                    OffsetForLeaderPartition(
                        partition=tp.partition,
                        current_leader_epoch=_epoch(cluster, tp),
                        leader_epoch=epochs[tp],
                    )
                    for tp in tps
                ],
            )
            for topic, tps in _by_topic(epochs)
        ],
    )
    answer = await (await cluster.connection(node)).ask(request, timeout_ms=timeout_ms)
    results: dict[TopicPartition, EpochEnd | Refused] = {}
    for topic in answer.topics:
        for each in topic.partitions:
            tp = TopicPartition(topic.topic, each.partition)
            if each.error_code != ErrorCode.NONE:
                results[tp] = refused(each.error_code, about=f"partition {tp}")
            else:
                results[tp] = EpochEnd(each.leader_epoch, each.end_offset)
    return {tp: results[tp] if tp in results else _missing(tp) for tp in epochs}


def _missing(tp: TopicPartition) -> Refused:
    """Return a retriable error for a partition missing in a response."""
    why = "missing in the broker's response"
    return Refused(ErrorCode.NETWORK_EXCEPTION, about=f"partition {tp}", message=why)


def _epoch(cluster: Cluster, tp: TopicPartition) -> int:
    led = cluster.known_leader(tp)
    return -1 if led is None else led[1]


def _by_topic(tps: Iterable[TopicPartition]) -> Iterable[tuple[str, list[TopicPartition]]]:
    topics: dict[str, list[TopicPartition]] = {}
    for tp in tps:
        topics.setdefault(tp.topic, []).append(tp)
    return topics.items()
