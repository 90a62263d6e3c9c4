"""Where partitions begin that a member has just got: at the committed offset, else by auto.offset.reset."""

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
        """Have these left alone until find() knows; what is sought meanwhile is not waited for any more."""
        waiting = {}
        for one in ones:
            # Upkeep leaves alone what somebody asks about; a seek begins a new generation and ends that.
            one.busy = True
            waiting[one.tp] = (one, one.generation)
        return waiting

    async def find(self, waiting: dict[TopicPartition, tuple[Assigned, int]]) -> None:
        """Until all of them have a beginning, or are not wanted any more."""
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
                if not is_retriable(error) and not _passes(error):
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
                # An open transaction may have commits pending: then it is asked again.
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


def _passes(error: ClientError) -> bool:
    """A member whose epoch moves on is asked for again; one that is lost has other worries."""
    return isinstance(error, Refused) and error.code in (
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
    )
