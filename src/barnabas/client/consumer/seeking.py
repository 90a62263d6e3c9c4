"""Mixin of Consumer for seeking, pausing and positions. Nothing here waits.

Each change of a position invalidates the data in flight for the old one.
"""

from collections.abc import Mapping

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.core import Core
from barnabas.client.consumer.settings import EARLIEST, LATEST, ConsumerSettings
from barnabas.client.errors import ClientError
from barnabas.client.group.errors import AssignedOtherwise


class Seeking:
    """Position and assignment methods of Consumer."""

    settings: ConsumerSettings

    def _check(self, *, leaving: bool = False) -> Core:
        raise NotImplementedError

    def _check_unsubscribed(self) -> Core:
        """Raise if the group assigns the partitions."""
        core = self._check()
        if core.is_subscribed:
            raise AssignedOtherwise("the group assigns the partitions: call unsubscribe() first")
        return core

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._check(leaving=True).positions.tps

    def unassign(self) -> None:
        """Remove all partitions from the assignment."""
        core = self._check_unsubscribed()
        core.replace({})
        core.changed()

    def seek(self, tp: tuple[str, int], offset: int, *, until: int | None = None) -> None:
        """Continue at this offset; whether it exists is checked by the next fetch.

        With `until`, fetching stops at that offset, with an EndOfPartition if enable.partition.eof is set.
        Batches are delivered whole, so the last records may be beyond it.
        """
        if offset < 0:
            raise ValueError(f"offset {offset} is negative; use seek_to_beginning() or seek_to_end()")
        if until is not None and until <= offset:
            raise ValueError(f"until={until} must be greater than offset={offset}")
        self._check().positions[TopicPartition(*tp)].until = until
        self.go_back(tp, offset)

    def go_back(self, tp: tuple[str, int], offset: int) -> None:
        """Continue at an offset, and keep the `until` of the last seek()."""
        core = self._check()
        one = core.positions[TopicPartition(*tp)]
        core.delivery.drop(one)
        one.move_to(offset)
        core.changed()

    def seek_to_beginning(self, *tps: tuple[str, int]) -> None:
        """Continue at the first record (default: all partitions)."""
        self._seek_by(EARLIEST, tps)

    def seek_to_end(self, *tps: tuple[str, int]) -> None:
        """Continue at the end, with new records only (default: all partitions)."""
        self._seek_by(LATEST, tps)

    def seek_to_time(self, time_ms: int, *tps: tuple[str, int]) -> None:
        """Continue at the first record with this timestamp or later, or at the end if there is none."""
        if time_ms < 0:
            raise ValueError(f"time {time_ms} is before 1970")
        self._seek_by(time_ms, tps)

    def _seek_by(self, reset_to: int, tps: tuple[tuple[str, int], ...]) -> None:
        core = self._check()
        for one in core.positions.named(TopicPartition(*each) for each in tps):
            core.delivery.drop(one)
            one.until = None
            one.move_by(reset_to)
        core.changed()

    def pause(self, *tps: tuple[str, int]) -> None:
        """Do not read partitions until resume(); fetched data is kept (default: all partitions)."""
        core = self._check()
        for one in core.positions.named(TopicPartition(*each) for each in tps):
            if not one.paused:
                core.delivery.park(one)
                one.paused = True
        core.changed()

    def resume(self, *tps: tuple[str, int]) -> None:
        """Read partitions again, also those that an error stopped (default: all partitions)."""
        core = self._check()
        for one in core.positions.named(TopicPartition(*each) for each in tps):
            one.paused = False
            if one.error is not None:
                self._try_again(core, one.tp)
            core.delivery.unpark(one)
        core.changed()

    def _try_again(self, core: Core, tp: TopicPartition) -> None:
        one = core.positions[tp]
        position, epoch = core.delivery.position_of(one)
        core.delivery.drop(one)
        if position is None:
            one.move_by(self.settings.reset_to(core.cluster.ports.clock.now_ms()))
        else:
            one.move_to(position, epoch)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(one.tp for one in self._check().positions if one.paused)

    @property
    def stopped(self) -> Mapping[TopicPartition, ClientError]:
        """The partitions stopped by an error, which the reader has raised or will raise."""
        return {one.tp: one.error for one in self._check().positions if one.error is not None}

    def lag(self, tp: tuple[str, int]) -> int | None:
        """Return the number of offsets left to read, as of the last response; None before the first."""
        core = self._check()
        one = core.positions[TopicPartition(*tp)]
        position, _ = core.delivery.position_of(one)
        end = one.end_offset(committed=self.settings.read_committed)
        return None if position is None or end < 0 else max(0, end - position)

    @property
    def held_bytes(self) -> int:
        """Bytes fetched but not read yet, at most about queued.max.messages.kbytes."""
        return sum(self._check().delivery.held.values())
