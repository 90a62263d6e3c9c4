"""What the driver asks a cluster: which partitions there are, where they begin and end, where times are."""

import logging
import re
import time
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Final, TypeVar

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.client.admin.offsets import IsolationLevel, ListedOffset, OffsetSpec
from barnabas.client.blocking.admin import Admin
from barnabas.client.errors import ClientError, is_retriable
from barnabas.spark.offsets import EARLIEST, LATEST, Offsets
from barnabas.spark.options.client_settings import admin_settings
from barnabas.spark.options.errors import BadOption
from barnabas.spark.options.positions import AtOffsets, AtTime, AtTimes, Place, Position, option_of
from barnabas.spark.options.source import Assigned, Choice, SourceOptions, Topics

logger = logging.getLogger(__name__)
T = TypeVar("T")

_NOTHING_YET: Final = 0


class Cluster:
    """Used as a block, or closed by close()."""

    def __init__(self, options: SourceOptions) -> None:
        self._choice: Choice = options.choice
        self._group_id = options.group_id
        level = options.client.get("isolation.level", "read_uncommitted")
        self._isolation: IsolationLevel = (
            "read_committed" if level == "read_committed" else "read_uncommitted"
        )
        self._retries, self._retry_after_ms = options.retries, options.retry_after_ms
        # Of the topics whose partitions were asked for last.
        self.topic_ids: dict[str, Uuid] = {}
        self.admin = self._tried(lambda: Admin(admin_settings(options.client)))

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.admin.close()

    def _tried(self, ask: Callable[[], T]) -> T:
        """What may go well later is asked again, as fetchOffset.numRetries says."""
        for left in reversed(range(self._retries)):
            try:
                return ask()
            except ClientError as error:
                if left == 0 or not is_retriable(error):
                    raise
                logger.warning("asked again in ms=%d because=%s", self._retry_after_ms, error)
                time.sleep(self._retry_after_ms / 1000)
        raise AssertionError("at least one try")

    def partitions(self) -> list[TopicPartition]:
        """All that the query reads, now. A topic that is named and not there is an error of the client."""
        described = self._tried(lambda: self.admin.describe_topics(self._names()))
        self.topic_ids = {
            str(name): topic.topic_id for name, topic in described.items() if topic.topic_id is not None
        }
        if isinstance(self._choice, Assigned):
            return sorted(self._choice.partitions)
        return sorted(
            TopicPartition(str(name), one.partition)
            for name, topic in described.items()
            for one in topic.partitions
        )

    def _names(self) -> list[str]:
        choice = self._choice
        if isinstance(choice, Assigned):
            return sorted({tp.topic for tp in choice.partitions})
        if isinstance(choice, Topics):
            return list(choice.names)
        pattern = re.compile(choice.text)
        # The cluster's own topics are read only by those who name them.
        return [name for name in self.admin.list_topics(internal=False) if pattern.search(name)]

    def earliest(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return self._ends(tps, OffsetSpec.EARLIEST)

    def latest(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The ends; for read_committed, the last stable offsets."""
        return self._ends(tps, OffsetSpec.LATEST)

    def written(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The ends, with what is in open transactions."""
        return _known(self._listed(dict.fromkeys(tps, int(OffsetSpec.LATEST)), "read_uncommitted"))

    def _ends(self, tps: Collection[TopicPartition], spec: OffsetSpec) -> dict[TopicPartition, int]:
        return _known(self._listed(dict.fromkeys(tps, int(spec)), self._isolation))

    def _listed(self, wanted: Offsets, isolation: IsolationLevel) -> dict[TopicPartition, ListedOffset]:
        return self._tried(lambda: self.admin.list_offsets(wanted, isolation=isolation)) if wanted else {}

    def resolve(
        self, position: Position, tps: Collection[TopicPartition], which: str
    ) -> dict[TopicPartition, int]:
        """The offset of a position in every partition. `which` is starting or ending, for errors."""
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
            raise BadOption(name, f"it must name every partition, and {missing[0]} is not in it")
        if unknown:
            raise BadOption(name, f"{unknown[0]} is not one of the partitions that are read")

    def _of_offsets(self, given: Offsets) -> dict[TopicPartition, int]:
        ends = {tp: offset for tp, offset in given.items() if offset in (EARLIEST, LATEST)}
        return {**given, **_known(self._listed(ends, self._isolation))}

    def _of_times(self, times: Offsets, else_latest: bool, name: str) -> dict[TopicPartition, int]:
        found = self._listed(times, self._isolation)
        offsets = {tp: one.offset for tp, one in found.items() if one.offset is not None}
        without = sorted(set(times) - set(offsets))
        if without and not else_latest:
            raise BadOption(name, f"{without[0]} has no record since {times[without[0]]} ms")
        return {**offsets, **(self.latest(without) if without else {})}

    def first_since(self, time_ms: int | None, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that is not older; the end where there is none. Nothing if no time is given."""
        return {} if time_ms is None else self._of_times(dict.fromkeys(tps, time_ms), True, "")

    def _of_group(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        assert self._group_id is not None, "checked with the options"
        group = self._group_id
        committed = self._tried(lambda: self.admin.list_group_offsets(group, require_stable=True))
        offsets = {tp: one.offset for tp in tps if (one := committed.get(tp)) is not None}
        without = [tp for tp in tps if tp not in offsets]
        return {**offsets, **(self.earliest(without) if without else {})}


def _known(found: dict[TopicPartition, ListedOffset]) -> dict[TopicPartition, int]:
    return {tp: _NOTHING_YET if one.offset is None else one.offset for tp, one in found.items()}
