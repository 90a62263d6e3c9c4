"""Where to read: seeking, pausing, and what is known of positions. Nothing here waits.

The half of Consumer that changes positions; each change voids what was under way for the old one.
"""

from collections.abc import Mapping

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.core import Core
from barnabas.client.consumer.settings import EARLIEST, LATEST, ConsumerSettings
from barnabas.client.errors import ClientError
from barnabas.client.group.errors import AssignedOtherwise


class Seeking:
    """What Consumer adds the reading to."""

    settings: ConsumerSettings

    def _check(self, *, leaving: bool = False) -> Core:
        raise NotImplementedError

    def _check_unsubscribed(self) -> Core:
        """What a group gives is not assigned by hand."""
        core = self._check()
        if core.is_subscribed:
            raise AssignedOtherwise("the group assigns the partitions: call unsubscribe() first")
        return core

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._check(leaving=True).positions.tps

    def unassign(self) -> None:
        """Read nothing."""
        core = self._check_unsubscribed()
        core.replace({})
        core.changed()

    def seek(self, tp: tuple[str, int], offset: int, *, until: int | None = None) -> None:
        """Go on at this offset; whether it is there shows when it is fetched.

        With `until` nothing is fetched from that offset on, and EndOfPartition comes there if it is asked
        for. A batch is handed out whole: its last records may be beyond.
        """
        if offset < 0:
            raise ValueError(f"offset {offset} is negative; use seek_to_beginning() or seek_to_end()")
        if until is not None and until <= offset:
            raise ValueError(f"until={until} must be greater than offset={offset}")
        self._check().positions[TopicPartition(*tp)].until = until
        self.go_back(tp, offset)

    def go_back(self, tp: tuple[str, int], offset: int) -> None:
        """Go on at an offset, and only as far as was said before."""
        core = self._check()
        one = core.positions[TopicPartition(*tp)]
        core.delivery.drop(one)
        one.move_to(offset)
        core.changed()

    def seek_to_beginning(self, *tps: tuple[str, int]) -> None:
        """Go on with the first record there is; all partitions if none is named."""
        self._seek_by(EARLIEST, tps)

    def seek_to_end(self, *tps: tuple[str, int]) -> None:
        """Go on with what comes next; all partitions if none is named."""
        self._seek_by(LATEST, tps)

    def seek_to_time(self, time_ms: int, *tps: tuple[str, int]) -> None:
        """Go on with the first record that is not older, or with what comes next if there is none."""
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
        """Leave partitions out until resume(); what was fetched of them is kept. All if none is named."""
        core = self._check()
        for one in core.positions.named(TopicPartition(*each) for each in tps):
            if not one.paused:
                core.delivery.park(one)
                one.paused = True
        core.changed()

    def resume(self, *tps: tuple[str, int]) -> None:
        """Read them again; one that an error stopped is tried again. All partitions if none is named."""
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
        """The partitions that stand still because of an error, which the reader has got or will get."""
        return {one.tp: one.error for one in self._check().positions if one.error is not None}

    def lag(self, tp: tuple[str, int]) -> int | None:
        """How many offsets are left to read, as of the last answer; None before the first."""
        core = self._check()
        one = core.positions[TopicPartition(*tp)]
        position, _ = core.delivery.position_of(one)
        end = one.end_offset(committed=self.settings.read_committed)
        return None if position is None or end < 0 else max(0, end - position)

    @property
    def held_bytes(self) -> int:
        """What was fetched and is not read yet: about queued.max.messages.kbytes at most."""
        return sum(self._check().delivery.held.values())
