"""Finds the start offset of newly assigned partitions: the committed offset, else auto.offset.reset."""

from collections.abc import Callable, Iterable

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.core import Core
from barnabas.client.consumer.positions import Assigned
from barnabas.client.errors import ClientError, Refused, is_retriable
from barnabas.client.group.coordinator import Coordinator, Pace
from barnabas.client.group.offsets import Committer, OffsetAndMetadata, fetch_committed
from barnabas.protocol.error_codes import ErrorCode


class Beginnings:
    def __init__(self, core: Core, coordinator: Coordinator, reader: Callable[[], Committer]) -> None:
        self._core = core
        self._coordinator = coordinator
        self._reader = reader

    def wait_for(self, ones: Iterable[Assigned]) -> dict[TopicPartition, tuple[Assigned, int]]:
        """Keep these partitions from being fetched until find() is done. A seek ends the wait."""
        waiting = {}
        for one in ones:
            # Upkeep skips busy partitions; a seek starts a new generation and clears the flag.
            one.busy = True
            waiting[one.tp] = (one, one.generation)
        return waiting

    async def find(self, waiting: dict[TopicPartition, tuple[Assigned, int]]) -> None:
        """Retry until each partition has a start offset or was moved or removed."""
        pace = Pace(self._core.cluster)
        while True:
            waiting = {tp: each for tp, each in waiting.items() if self._core.is_current(*each)}
            if not waiting:
                return
            try:
                found = await fetch_committed(
                    self._coordinator,
                    self._reader(),
                    waiting,
                    require_stable=self._core.settings.read_committed,
                )
            except ClientError as error:
                if not is_retriable(error) and not _is_transient(error):
                    self._stop_all(waiting, error)
                    return
                await pace.wait()
                continue
            for tp, offset in found.items():
                self._begin(*waiting[tp], offset)
            self._core.changed()
            waiting = {tp: each for tp, each in waiting.items() if isinstance(found[tp], Refused)}
            if waiting:
                await pace.wait()

    def _begin(self, one: Assigned, generation: int, at: OffsetAndMetadata | Refused | None) -> None:
        if not self._core.is_current(one, generation):
            return
        match at:
            case Refused() as error:
                # A retriable error (an open transaction may have pending commits) is tried again.
                if not error.retriable:
                    one.busy = False
                    self._core.stop(one, error)
            case None:
                one.move_by(self._core.settings.reset_to(self._core.cluster.ports.clock.now_ms()))
            case OffsetAndMetadata(offset=offset, leader_epoch=epoch):
                one.move_to(offset, epoch)

    def _stop_all(self, waiting: dict[TopicPartition, tuple[Assigned, int]], error: ClientError) -> None:
        for one, generation in waiting.values():
            if self._core.is_current(one, generation):
                one.busy = False
                self._core.stop(one, error)


def _is_transient(error: ClientError) -> bool:
    """Whether a membership error is worth a retry: the member's epoch may be updated soon."""
    return isinstance(error, Refused) and error.code in (
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
    )
