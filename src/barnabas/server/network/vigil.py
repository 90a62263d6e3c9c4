"""How long to stay awake when answers have gone out.

Many clients ask again as soon as they are answered. To sleep until then and be woken takes longer than to
look a few times: on a virtual machine 50 microseconds, a third of a small request, and more of the processor
than looking. It is bounded by experience: where nobody asks again so soon, or others want the processor, it
is hardly tried any more.
"""

from collections.abc import Callable
from typing import Final

# A client is woken and has its next request ready within this time, or it is in no hurry.
AWAKE_NS: Final = 150_000
# So much time has gone by that was not ours: somebody else had the processor.
PUSHED_ASIDE_NS: Final = 300_000
# It goes on as long as one time in three somebody came; so often it may be in vain in a row.
CREDIT_MAX: Final = 8
CREDIT_FOR_ONE: Final = 2
# After so many turns it is tried again; later each time if it was in vain again.
REST_MIN: Final = 8
REST_MAX: Final = 64

# With one alone, clients could not do what we stay awake for.
PROCESSORS_MIN: Final = 2


def awake_ns_with(processors: float) -> int:
    """How long a broker may stay awake that can use so many processors."""
    return AWAKE_NS if processors >= PROCESSORS_MIN else 0


class Vigil:
    """Knows no loop: a Turn asks it. `used_ns` tells how long this thread had the processor.

    Not awake at all with `awake_ns` 0.
    """

    def __init__(self, ticks_ns: Callable[[], int], used_ns: Callable[[], int], awake_ns: int) -> None:
        self._ticks_ns = ticks_ns
        self._used_ns = used_ns
        self._awake_ns = awake_ns
        self._begun_ns = 0
        self._used_before_ns = 0
        self._credit = CREDIT_MAX
        self._turns_to_rest = 0
        self._rest = REST_MIN

    def begin(self) -> bool:
        """Answers have gone out: whether to look for requests before sleeping."""
        if self._awake_ns == 0:
            return False
        if self._turns_to_rest > 0:
            self._turns_to_rest -= 1
            return False
        self._used_before_ns = self._used_ns()
        self._begun_ns = self._ticks_ns()
        return True

    def goes_on(self) -> bool:
        """Nobody has come yet: whether to look once more."""
        passed_ns = self._ticks_ns() - self._begun_ns
        if passed_ns < self._awake_ns:
            return True
        if passed_ns - (self._used_ns() - self._used_before_ns) > PUSHED_ASIDE_NS:
            self._turns_to_rest = REST_MAX
            return False
        self._credit -= 1
        if self._credit < 0:
            self._credit = 0
            self._turns_to_rest = self._rest
            self._rest = min(2 * self._rest, REST_MAX)
        return False

    def came(self) -> None:
        """Somebody has asked while we were awake."""
        self._credit = min(self._credit + CREDIT_FOR_ONE, CREDIT_MAX)
        self._rest = REST_MIN
