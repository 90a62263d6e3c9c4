"""Pending requests that wait for the answer of a shard."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from barnabas.coordinators.decision.outcome import ReplyTo
from barnabas.protocol.error_codes import ErrorCode

_NOT_YET: Final = object()


class Waiting(ReplyTo):
    """A ReplyTo that the shell can answer."""

    __slots__ = ()

    @property
    @abstractmethod
    def is_given(self) -> bool:
        """Whether it has been answered."""

    @abstractmethod
    def give(self, answer: object) -> None:
        """Deliver the answer."""

    @abstractmethod
    def refuse(self, code: ErrorCode) -> None:
        """Deliver an error instead of an answer."""


class Answered(Waiting):
    """Answered once by the shell. Most answers come before the handler returns; later ones call `then`."""

    __slots__ = ("_then", "answer")

    def __init__(self) -> None:
        self._then: Callable[[object], None] | None = None
        self.answer: object = _NOT_YET

    @property
    def is_given(self) -> bool:
        return self.answer is not _NOT_YET

    def give(self, answer: object) -> None:
        assert self.answer is _NOT_YET, "already answered"
        self.answer = answer
        if self._then is not None:
            self._then(answer)

    def refuse(self, code: ErrorCode) -> None:
        self.give(self.refusal(code))

    @abstractmethod
    def refusal(self, code: ErrorCode) -> object:
        """The error response for a code."""

    def then_call(self, then: Callable[[object], None]) -> None:
        assert not self.is_given, "already answered"
        self._then = then


class Reply(Answered):
    """An Answered whose error response is built by a function."""

    __slots__ = ("_refusal",)

    def __init__(self, refusal: Callable[[ErrorCode], object]) -> None:
        super().__init__()
        self._refusal = refusal

    def refusal(self, code: ErrorCode) -> object:
        return self._refusal(code)
