"""What clients of groups have in common: what each knows, what it works on, and what it does next.

turn() is the next step of a client that does as it should. Tests make it do other things as well: ask again,
keep silent, start anew. A client that can never be in its group is `out_for_good`. The two kinds are in
group_model_classic.py and group_model_consumer.py.
"""

from collections.abc import Callable, Iterable
from typing import Any

from barnabas.base.ids import Uuid
from barnabas.protocol.error_codes import ErrorCode
from support.group.model import Asked, GroupWorld

HOST = "/127.0.0.1"
SESSION_MS = 10_000
REBALANCE_MS = 20_000
# An epoch, or a generation, that no group comes to.
NO_SUCH_EPOCH = 4_000
Place = tuple[Uuid, int]

# What may become right by itself, or when the client starts from the beginning.
_TRY_AGAIN = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.MEMBER_ID_REQUIRED,
    }
)
_NEVER = frozenset(
    {
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
    }
)


class GroupClient:
    """What both kinds have in common."""

    def __init__(
        self, world: GroupWorld, group: str, name: str, topics: Iterable[str], instance_id: str | None
    ) -> None:
        self.world = world
        self.group = group
        self.name = name
        self.topics = sorted(topics)
        self.instance_id = instance_id
        self.id = ""
        self.out_for_good = False
        # What it works on, and what it was told to give up and has not said that it did.
        self.owned: set[Place] = set()
        self.releasing: set[Place] = set()
        # It counts only what it was given by a group whose coordinator assigns.
        self.was_given_by_server = False
        self._current: Asked | None = None

    @property
    def epoch_or_generation(self) -> int:
        raise NotImplementedError

    def turn(self) -> None:
        """The next thing that it has to do."""
        raise NotImplementedError

    def ask_again(self) -> None:
        raise NotImplementedError

    def heartbeat(self) -> None:
        raise NotImplementedError

    def subscribes(self, topics: Iterable[str], regex: str) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        raise NotImplementedError

    def starts_anew(self) -> None:
        """The process is another one, and knows nothing."""
        self._current = None
        self.id = ""
        self._drop()

    @property
    def is_in(self) -> bool:
        """It takes itself to be a member."""
        raise NotImplementedError

    @property
    def works_on(self) -> set[Place]:
        return self.owned | self.releasing

    def _drop(self) -> None:
        self.owned, self.releasing = set(), set()

    def _take(self, given: set[Place]) -> None:
        self.releasing = (self.owned | self.releasing) - given
        self.owned = given

    def _ask(self, what: str, call: Any, then: Callable[[Any], None]) -> None:
        """The answer counts unless the client has asked something else meanwhile."""
        label = f"{what} of {self.name} in {self.group}"
        early: list[Asked] = []

        def answered(asked: Asked) -> None:
            if self._current is None:
                early.append(asked)
            elif self._current is asked:
                then(asked.answer)

        self._current = None
        asked = self.world.ask(label, call, answered)
        self._current = asked
        if early:
            then(asked.answer)

    def _failed(self, code: ErrorCode) -> None:
        """What every client makes of an error."""
        if code in _NEVER:
            self.out_for_good = True
        else:
            assert code in _TRY_AGAIN, f"{self.name} in {self.group} was told {code.name}"
