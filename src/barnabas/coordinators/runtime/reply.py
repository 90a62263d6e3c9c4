"""Somebody who waits for an answer of a shard."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from barnabas.coordinators.decision.outcome import ReplyTo
from barnabas.protocol.error_codes import ErrorCode

_NOT_YET: Final = object()


class Waiting(ReplyTo):
    """Everybody to whom the shell gives what the core has decided."""

    __slots__ = ()

    @property
    @abstractmethod
    def is_given(self) -> bool:
        """Whether it has its answer already."""

    @abstractmethod
    def give(self, answer: object) -> None:
        """This is the answer."""

    @abstractmethod
    def refuse(self, code: ErrorCode) -> None:
        """There is none, for this reason."""


class Reply(Waiting):
    """Answered once, by the shell. Most are before the handler returns; the others tell `then`."""

    __slots__ = ("_refuse", "_then", "answer")

    def __init__(self, refuse: Callable[[ErrorCode], object]) -> None:
        self._refuse = refuse
        self._then: Callable[[object], None] | None = None
        self.answer: object = _NOT_YET

    @property
    def is_given(self) -> bool:
        return self.answer is not _NOT_YET

    def give(self, answer: object) -> None:
        assert self.answer is _NOT_YET, "an answer that was given already"
        self.answer = answer
        if self._then is not None:
            self._then(answer)

    def refuse(self, code: ErrorCode) -> None:
        self.give(self._refuse(code))

    def then_call(self, then: Callable[[object], None]) -> None:
        assert not self.is_given, "it is here already"
        self._then = then
