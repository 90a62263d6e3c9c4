"""Combine several answers, of which some may be deferred, into one."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from barnabas.server.requests.api import Answer
from barnabas.server.requests.later import Later


def gathered(answers: Sequence[Answer], make: Callable[[list[Any]], object]) -> Answer:
    """Return make() of all answers, in order: now if all are there, otherwise a Later for it."""
    waiting = [at for at, answer in enumerate(answers) if isinstance(answer, Later)]
    found = list(answers)
    if not waiting:
        return make(found)
    whole = Later()
    left = len(waiting)

    def come(at: int, answer: object) -> None:
        nonlocal left
        found[at] = answer
        left -= 1
        if left == 0:
            whole.finish(make(found))

    for at in waiting:
        one = answers[at]
        assert isinstance(one, Later)
        one.then_call(partial(come, at))
    return whole
