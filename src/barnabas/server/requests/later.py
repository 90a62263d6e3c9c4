"""A deferred response.

A handler returns a Later when all changes of its request have been made and only the response must wait, for
more bytes to read or for other replicas. The requests behind it need not wait. A handler whose work itself
takes time returns a coroutine, and the connection starts no other request until that is done.
"""

from collections.abc import Callable
from typing import Any


class Later:
    """finish() is called once, by the producer of the answer; then_call() once, by the connection."""

    __slots__ = ("_answer", "_is_done", "_then", "on_cancel", "on_hurry")

    def __init__(self) -> None:
        self._answer: Any = None
        self._is_done = False
        self._then: Callable[[Any], None] | None = None
        # Called when the answer is no longer needed: the client has gone, or the broker is stopping.
        self.on_cancel: Callable[[], None] | None = None
        # Called when the broker is stopping: finish() should be called now, with what there is.
        self.on_hurry: Callable[[], None] | None = None

    def then_call(self, then: Callable[[Any], None]) -> None:
        if self._is_done:
            then(self._answer)
        else:
            self._then = then

    def finish(self, answer: object) -> None:
        assert not self._is_done, "finish() was called twice"
        self._is_done = True
        self._answer = answer
        if self._then is not None:
            then, self._then = self._then, None
            then(answer)

    def cancel(self) -> None:
        """The answer is no longer needed."""
        self._then = None
        if not self._is_done and self.on_cancel is not None:
            on_cancel, self.on_cancel = self.on_cancel, None
            on_cancel()
