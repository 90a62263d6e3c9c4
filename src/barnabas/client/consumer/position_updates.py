"""The task that prepares partitions for fetching and starts one fetcher per broker.

It looks up start offsets (ListOffsets), validates positions after leader changes (OffsetForLeaderEpoch,
KIP-320), finds leaders (metadata), and detects deleted topics. Each lookup is a task of its own, so that a
broker that hangs delays only the partitions it leads.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from barnabas.base.ids import TopicPartition
from barnabas.base.tasks import Tasks
from barnabas.client.consumer.core import Core
from barnabas.client.consumer.errors import LogTruncated, NoOffset
from barnabas.client.consumer.fetcher import Fetcher
from barnabas.client.consumer.offsets import EpochEnd, OffsetAt, ask_epoch_ends, ask_offsets
from barnabas.client.consumer.positions import UNKNOWN, PartitionState, PositionCheck
from barnabas.client.consumer.settings import EARLIEST, LATEST
from barnabas.client.errors import ClientError, Refused, UnknownTopic, is_retriable, refused
from barnabas.protocol.error_codes import ErrorCode

# Consecutive metadata responses without a topic until it counts as deleted: one broker may lag.
MISSING_MAX: Final = 2

Lookup = Callable[[int, list[PartitionState]], Coroutine[Any, Any, None]]


class PositionUpdater:
    def __init__(self, core: Core, tasks: Tasks) -> None:
        self._core = core
        self._tasks = tasks
        self._cluster = core.cluster
        self._refreshing = False

    async def run(self) -> None:
        interest_s = self._core.settings.metadata_max_idle_ms / 2000
        while True:
            self._core.update_wakeup.clear()
            await self._keep_topics_in_use()
            later_s = self._start_due_work()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(later_s, self._core.now_s() + interest_s)):
                    await self._core.update_wakeup.wait()

    async def _keep_topics_in_use(self) -> None:
        """Keep assigned topics from being dropped as idle. For a known topic this does not wait."""
        for topic in self._core.positions.topics:
            known = self._cluster.metadata.topics.get(topic)
            if known is not None and any(known.leader_of(each.partition) for each in known.partitions):
                await self._cluster.topic(topic)

    def _start_due_work(self) -> float:
        """Start all due work, and return when to look again."""
        now_s = self._core.due_s()
        later_s = float("inf")
        leaderless: list[PartitionState] = []
        by_lookup: dict[tuple[Lookup, int], list[PartitionState]] = {}
        for one in self._core.positions:
            if one.error is not None or one.in_lookup:
                continue
            if one.retry_at_s > now_s:
                later_s = min(later_s, one.retry_at_s)
                continue
            led = self._cluster.known_leader(one.tp)
            if led is None:
                leaderless.append(one)
                continue
            node = self._core.route(one)
            assert node is not None, f"{one.tp} has a leader but no route"
            if one.error is not None:
                continue
            lookup = self._lookup_for(one)
            if lookup is not None:
                by_lookup.setdefault((lookup, led[0]), []).append(one)
            elif node not in self._core.fetchers:
                self._start_fetcher(node)
        for (lookup, leader), ones in by_lookup.items():
            self._start_lookup(lookup, leader, ones)
        if leaderless and not self._refreshing:
            self._refreshing = True
            self._tasks.start(self._refresh(leaderless))
        return later_s

    def _lookup_for(self, one: PartitionState) -> Lookup | None:
        if one.position is None:
            return self._find_range if one.reset_to is None else self._find_start
        match one.pending_check:
            case PositionCheck.LEADER:
                return self._compare_epochs
            case PositionCheck.RANGE:
                return self._find_range
            case None:
                return None

    def _start_fetcher(self, node: int) -> None:
        fetcher = Fetcher(self._core, node)
        self._core.fetchers[node] = fetcher
        self._tasks.start(fetcher.run())

    def _start_lookup(self, lookup: Lookup, leader: int, ones: list[PartitionState]) -> None:
        for one in ones:
            one.in_lookup = True
        # Capture the generations now: a seek may come before the task runs.
        self._tasks.start(self._run_lookup(lookup, leader, [(one, one.generation) for one in ones]))

    async def _run_lookup(self, lookup: Lookup, leader: int, asked: list[tuple[PartitionState, int]]) -> None:
        """Run a lookup; if it fails as a whole, retry all its partitions later."""
        try:
            current = [one for one, generation in asked if self._core.is_current(one, generation)]
            if current:
                await lookup(leader, current)
        except ClientError as error:
            for one, generation in asked:
                if self._core.is_current(one, generation):
                    self._core.forget_leader(one, error)
            if not is_retriable(error):
                self._core.report_error(error)
        finally:
            for one, generation in asked:
                if one.generation == generation:
                    one.in_lookup = False
            self._core.wake_all()

    # Lookups. A result is ignored if the partition's generation has changed in the meantime.

    async def _find_start(self, node: int, ones: list[PartitionState]) -> None:
        asked = {one.tp: (one, one.generation) for one in ones}
        wanted = {one.tp: one.reset_to for one in ones if one.reset_to is not None}
        committed = self._core.settings.read_committed
        found = await ask_offsets(self._cluster, node, wanted, committed=committed)
        for tp, (one, generation) in asked.items():
            if not self._core.is_current(one, generation):
                continue
            match found[tp]:
                case Refused() as error:
                    self._handle_refusal(one, error)
                case None:
                    # No record is at or after the timestamp: start at the end.
                    one.reset_to = LATEST
                case OffsetAt(offset=offset):
                    one.move_to(offset)
                    if wanted[tp] == LATEST:
                        _note_end(one, offset, committed=committed)

    async def _find_range(self, node: int, ones: list[PartitionState]) -> None:
        """Stop partitions without a position and reset policy; look up their range for the error."""
        asked = {one.tp: (one, one.generation) for one in ones}
        ends: list[dict[TopicPartition, OffsetAt | Refused | None]] = []
        for which in (EARLIEST, LATEST):
            wanted = dict.fromkeys(asked, which)
            ends.append(
                await ask_offsets(
                    self._cluster,
                    node,
                    wanted,
                    committed=self._core.settings.read_committed,
                )
            )
        for tp, (one, generation) in asked.items():
            if not self._core.is_current(one, generation):
                continue
            start, end = ends[0][tp], ends[1][tp]
            if isinstance(start, Refused) or isinstance(end, Refused):
                self._handle_refusal(one, start if isinstance(start, Refused) else end)
            else:
                first, last = (UNKNOWN if each is None else each.offset for each in (start, end))
                self._core.stop(one, NoOffset(tp, one.position, first, last))

    async def _compare_epochs(self, node: int, ones: list[PartitionState]) -> None:
        asked = {one.tp: (one, one.generation) for one in ones}
        epochs = {one.tp: one.epoch for one in ones}
        found = await ask_epoch_ends(self._cluster, node, epochs)
        for tp, (one, generation) in asked.items():
            if not self._core.is_current(one, generation):
                continue
            match found[tp]:
                case Refused() as error:
                    self._handle_refusal(one, error)
                case EpochEnd() as end:
                    self._apply_epoch_end(one, end)

    def _apply_epoch_end(self, one: PartitionState, end: EpochEnd) -> None:
        assert one.position is not None, f"{one.tp} has no position to compare"
        is_known = end.leader_epoch != UNKNOWN and end.end_offset != UNKNOWN
        if is_known and end.end_offset >= one.position:
            one.pending_check, one.failures = None, 0
            return
        reset_to = self._core.settings.reset_to(self._cluster.ports.clock.now_ms())
        if reset_to is None:
            one.pending_check = None
            diverged_at = end.end_offset if is_known else None
            self._core.stop(one, LogTruncated(one.tp, one.position, diverged_at))
        elif is_known:
            one.move_to(end.end_offset, end.leader_epoch)
        else:
            one.reset(reset_to)

    def _handle_refusal(self, one: PartitionState, error: object) -> None:
        assert isinstance(error, Refused), f"{one.tp}: {error!r} is not an error"
        if not error.retriable:
            self._core.stop(one, error)
        else:
            self._core.forget_leader(one, error)

    # Metadata

    async def _refresh(self, ones: list[PartitionState]) -> None:
        asked = [(one, one.generation) for one in ones]
        failure: ClientError | None = None
        try:
            await self._cluster.refresh({one.tp.topic for one in ones})
        except ClientError as error:
            failure = error
            if not is_retriable(error):
                self._core.report_error(error)
        finally:
            self._refreshing = False
        for one, generation in asked:
            if self._core.is_current(one, generation):
                if failure is None:
                    self._check_topic(one)
                else:
                    self._core.retry_later(one, failure)
        self._core.wake_all()

    def _check_topic(self, one: PartitionState) -> None:
        """Check the metadata of a partition without a known leader."""
        metadata, name = self._cluster.metadata, one.tp.topic
        topic = metadata.topics.get(name)
        self._core.check_topic_id(one)
        if one.error is not None:
            return
        if topic is None or one.tp.partition >= len(topic.partitions):
            code = metadata.errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            one.missing_count += 1
            if not code.retriable:
                self._core.stop(one, refused(code, about=f"topic {name}"))
            elif code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and one.missing_count >= MISSING_MAX:
                self._core.stop(
                    one, UnknownTopic(about=f"partition {one.tp}", message="the topic was deleted")
                )
            else:
                self._core.retry_later(one, code.name)
        elif self._cluster.known_leader(one.tp) is None:
            self._core.retry_later(one, "no leader")


def _note_end(one: PartitionState, offset: int, *, committed: bool) -> None:
    if committed:
        one.last_stable_offset = offset
    else:
        one.high_watermark = offset
