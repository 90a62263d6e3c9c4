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


class Answered(Waiting):
    """Answered once, by the shell. Most are before the handler returns; the others tell `then`."""

    __slots__ = ("_then", "answer")

    def __init__(self) -> None:
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
        self.give(self.refusal(code))

    @abstractmethod
    def refusal(self, code: ErrorCode) -> object:
        """The answer that says nothing but that code."""

    def then_call(self, then: Callable[[object], None]) -> None:
        assert not self.is_given, "it is here already"
        self._then = then


class Reply(Answered):
    """With a function that makes the refusal."""

    __slots__ = ("_refusal",)

    def __init__(self, refusal: Callable[[ErrorCode], object]) -> None:
        super().__init__()
        self._refusal = refusal

    def refusal(self, code: ErrorCode) -> object:
        return self._refusal(code)
