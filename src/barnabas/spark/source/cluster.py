"""The driver's requests to the cluster: partitions, log start and end offsets, offsets of timestamps."""

import logging
import re
import time
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Final, NamedTuple, TypeVar

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.admin.call import PartlyRefused
from barnabas.client.admin.records import IsolationLevel, ListedOffset, OffsetSpec
from barnabas.client.admin.topic_descriptions import TopicDescription
from barnabas.client.blocking.admin import Admin
from barnabas.client.errors import ClientError, UnknownTopic, is_retriable
from barnabas.spark.first_contact import NotReached, is_no_answer
from barnabas.spark.offsets import EARLIEST, LATEST, Offsets
from barnabas.spark.options.client_settings import admin_settings, call_timeout_ms, connecting_in_time
from barnabas.spark.options.positions import AtOffsets, AtTime, AtTimes, Place, Position, option_of
from barnabas.spark.options.source import Assigned, Choice, Pattern, SourceOptions, Topics
from barnabas.spark.options.values import BadOption

logger = logging.getLogger(__name__)
T = TypeVar("T")

_NOTHING_YET: Final = 0


class Look(NamedTuple):
    """First and last offsets of the query's partitions, topic ids, and partitions that no longer exist."""

    earliest: dict[TopicPartition, int]
    latest: dict[TopicPartition, int]
    topic_ids: dict[str, Uuid]
    absent: frozenset[TopicPartition]


class Cluster:
    """Requests with retries; a context manager, or closed with close().

    Until is_running is set, unresponsive brokers fail after connectTimeout. Afterwards the client's own
    timeouts apply, because brokers may be restarted while a query runs.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._choice: Choice = options.choice
        self._group_id = options.group_id
        level = options.client.get("isolation.level", "read_uncommitted")
        self._isolation: IsolationLevel = (
            "read_committed" if level == "read_committed" else "read_uncommitted"
        )
        self._retries, self._retry_after_ms = options.retries, options.retry_after_ms
        self._servers = options.client["bootstrap.servers"]
        self._call_ms, self._connect_ms = call_timeout_ms(options.client), options.connect_ms
        self.is_running = False
        # Topic ids of the last describe request, and the named topics that no broker knew.
        self.topic_ids: dict[str, Uuid] = {}
        self._missing: frozenset[str] = frozenset()
        settings = admin_settings(options.client)
        self.admin = self._tried(lambda limit_ms: Admin(connecting_in_time(settings, limit_ms)))

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.admin.close()

    def _tried(self, ask: Callable[[int], T]) -> T:
        """Call `ask` with a timeout, and retry retriable errors: fetchOffset.numRetries attempts in total."""
        until_s = None if self.is_running else time.monotonic() + self._connect_ms / 1000
        for left in reversed(range(self._retries)):
            try:
                return ask(self._limit_ms(until_s))
            except ClientError as error:
                is_last = left == 0 or not is_retriable(error)
                if until_s is not None and is_no_answer(error) and (is_last or self._is_over(until_s)):
                    raise NotReached(self._servers, self._connect_ms, error) from error
                if is_last:
                    raise
                logger.warning("request failed, retrying retry_ms=%d error=%s", self._retry_after_ms, error)
                time.sleep(self._retry_after_ms / 1000)
        raise AssertionError("at least one try")

    def _limit_ms(self, until_s: float | None) -> int:
        if until_s is None:
            return self._call_ms
        return max(1, min(self._call_ms, round((until_s - time.monotonic()) * 1000)))

    def _is_over(self, until_s: float) -> bool:
        """Whether another attempt, after the retry interval, would start too late."""
        return time.monotonic() + self._retry_after_ms / 1000 >= until_s

    # Topics and partitions

    def partitions(self) -> list[TopicPartition]:
        """Return the query's partitions. Raises UnknownTopic if a named topic or partition does not exist."""
        there = self._there()
        self._gone(there, {})
        return there

    def ends(self) -> dict[TopicPartition, int]:
        """Return the end offsets of the partitions that exist; missing topics are no error."""
        return self._settled(lambda: self.latest(self._there()))

    def look(self, before: Offsets) -> Look:
        """Return the current partitions and offsets. A named topic that does not exist is absent if the query
        has read it before; otherwise UnknownTopic is raised."""

        def look() -> Look:
            there = self._there()
            absent = self._gone(there, before)
            return Look(self.earliest(there), self.latest(there), self.topic_ids, absent)

        return self._settled(look)

    def _settled(self, look: Callable[[], T]) -> T:
        """Retry if a topic is deleted between the requests of `look`."""
        for left in reversed(range(self._retries)):
            try:
                return look()
            except PartlyRefused as error:
                if left == 0 or not _is_unknown(error):
                    raise
                logger.info("topics changed between requests, retrying error=%s", error)
        raise AssertionError("at least one try")

    def _there(self) -> list[TopicPartition]:
        described = self._described(self._names())
        self.topic_ids = {
            name: topic.topic_id for name, topic in described.items() if topic.topic_id is not None
        }
        there = {
            TopicPartition(name, one.partition)
            for name, topic in described.items()
            for one in topic.partitions
        }
        return sorted(there & set(self._choice.partitions) if isinstance(self._choice, Assigned) else there)

    def _described(self, names: list[str]) -> dict[str, TopicDescription]:
        """Return the topics that brokers know. Retries for topics that have newly become unknown, because the
        broker may have stale metadata."""

        def describe(limit_ms: int) -> dict[str, TopicDescription]:
            try:
                found = self.admin.describe_topics(names, timeout_ms=limit_ms)
            except PartlyRefused as error:
                if not _is_unknown(error):
                    raise
                found = error.done
            return {str(name): topic for name, topic in found.items()}

        for left in reversed(range(self._retries)):
            described = self._tried(describe)
            missing = frozenset(names) - described.keys()
            if left == 0 or isinstance(self._choice, Pattern) or missing <= self._missing:
                break
            logger.warning(
                "topics unknown, retrying retry_ms=%d topics=%s",
                self._retry_after_ms,
                ",".join(sorted(missing)),
            )
            time.sleep(self._retry_after_ms / 1000)
        self._missing = missing
        return described

    def _gone(self, there: list[TopicPartition], before: Offsets) -> frozenset[TopicPartition]:
        """Return the missing partitions that are in `before`; raise UnknownTopic for other missing ones."""
        if isinstance(self._choice, Assigned):
            gone = set(self._choice.partitions) - set(there)
            if new := gone - before.keys():
                raise self._unknown(f"partition {min(new)}")
            return frozenset(gone)
        if isinstance(self._choice, Pattern):
            return frozenset()
        gone_topics = set(self._choice.names) - {tp.topic for tp in there}
        if new_topics := gone_topics - {tp.topic for tp in before}:
            raise self._unknown(f"topic {min(new_topics)}")
        return frozenset(tp for tp in before if tp.topic in gone_topics)

    def _unknown(self, about: str) -> UnknownTopic:
        return UnknownTopic(about=about, message=f"no broker at {self._servers} knows it")

    def _names(self) -> list[str]:
        choice = self._choice
        if isinstance(choice, Assigned):
            return sorted({tp.topic for tp in choice.partitions})
        if isinstance(choice, Topics):
            return list(choice.names)
        pattern = re.compile(choice.text)
        # Internal topics are read only if they are named.
        listed = self._tried(lambda limit_ms: self.admin.list_topics(internal=False, timeout_ms=limit_ms))
        return [name for name in listed if pattern.search(name)]

    # Offsets

    def earliest(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return self._ends(tps, OffsetSpec.EARLIEST)

    def earliest_there(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offsets of the partitions that exist."""
        return _there(lambda: self._listed(dict.fromkeys(tps, int(OffsetSpec.EARLIEST)), self._isolation))

    def latest(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end offsets; for read_committed, the last stable offsets."""
        return self._ends(tps, OffsetSpec.LATEST)

    def written(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end offsets, including open transactions, of the partitions that exist."""
        return _there(lambda: self._listed(dict.fromkeys(tps, int(OffsetSpec.LATEST)), "read_uncommitted"))

    def _ends(self, tps: Collection[TopicPartition], spec: OffsetSpec) -> dict[TopicPartition, int]:
        return _known(self._listed(dict.fromkeys(tps, int(spec)), self._isolation))

    def _listed(self, wanted: Offsets, isolation: IsolationLevel) -> dict[TopicPartition, ListedOffset]:
        if not wanted:
            return {}
        return self._tried(
            lambda limit_ms: self.admin.list_offsets(wanted, isolation=isolation, timeout_ms=limit_ms)
        )

    def resolve(
        self, position: Position, tps: Collection[TopicPartition], which: str
    ) -> dict[TopicPartition, int]:
        """Resolve a position to an offset per partition. `which` is starting or ending, for errors."""
        name = option_of(position, which)
        if position is Place.EARLIEST:
            return self.earliest(tps)
        if position is Place.LATEST:
            return self.latest(tps)
        if position is Place.GROUP:
            return self._of_group(tps)
        if isinstance(position, AtOffsets):
            self._check_all(position.offsets, tps, name)
            return self._of_offsets(position.offsets)
        if isinstance(position, AtTimes):
            self._check_all(position.times_ms, tps, name)
            return self._of_times(position.times_ms, position.else_latest, name)
        assert isinstance(position, AtTime), f"a position: {position!r}"
        return self._of_times(dict.fromkeys(tps, position.time_ms), position.else_latest, name)

    @staticmethod
    def _check_all(given: Offsets, tps: Collection[TopicPartition], name: str) -> None:
        missing, unknown = sorted(set(tps) - set(given)), sorted(set(given) - set(tps))
        if missing:
            raise BadOption(name, f"it must name every partition, but {missing[0]} is missing")
        if unknown:
            raise BadOption(name, f"{unknown[0]} is not one of the partitions of the query")

    def _of_offsets(self, given: Offsets) -> dict[TopicPartition, int]:
        ends = {tp: offset for tp, offset in given.items() if offset in (EARLIEST, LATEST)}
        return {**given, **_known(self._listed(ends, self._isolation))}

    def _of_times(self, times: Offsets, else_latest: bool, name: str) -> dict[TopicPartition, int]:
        found = self._listed(times, self._isolation)
        offsets = {tp: one.offset for tp, one in found.items() if one.offset is not None}
        without = sorted(set(times) - set(offsets))
        if without and not else_latest:
            raise BadOption(name, f"{without[0]} has no record at or after timestamp {times[without[0]]}")
        return {**offsets, **(self.latest(without) if without else {})}

    def first_since(self, time_ms: int | None, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offsets at or after a timestamp, or the end if there is none; {} if it is None."""
        return {} if time_ms is None else self._of_times(dict.fromkeys(tps, time_ms), True, "")

    def _of_group(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        assert self._group_id is not None, "checked with the options"
        group = self._group_id
        committed = self._tried(
            lambda limit_ms: self.admin.list_group_offsets(group, require_stable=True, timeout_ms=limit_ms)
        )
        offsets = {tp: one.offset for tp in tps if (one := committed.get(tp)) is not None}
        without = [tp for tp in tps if tp not in offsets]
        return {**offsets, **(self.earliest(without) if without else {})}


def _known(found: dict[TopicPartition, ListedOffset]) -> dict[TopicPartition, int]:
    return {tp: _NOTHING_YET if one.offset is None else one.offset for tp, one in found.items()}


def _there(listed: Callable[[], dict[TopicPartition, ListedOffset]]) -> dict[TopicPartition, int]:
    """Drop the partitions that brokers do not know."""
    try:
        return _known(listed())
    except PartlyRefused as error:
        if not _is_unknown(error):
            raise
        return _known(error.done)


def _is_unknown(error: PartlyRefused) -> bool:
    """Whether all errors are unknown topics or partitions."""
    return all(isinstance(each, UnknownTopic) for each in error.refused.values())
