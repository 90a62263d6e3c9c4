"""How long to busy-poll for new requests after responses have been sent.

Many clients send the next request as soon as they have a response. Sleeping until then costs more than
polling a few times: on a virtual machine a wake-up takes 50 microseconds, a third of a small request, and
more CPU than the polls. Polling adapts: if requests do not arrive in time, or other threads need the CPU, it
is tried only rarely.
"""

from collections.abc import Callable
from typing import Final

# How long to poll: a busy client wakes up and sends its next request within this time.
AWAKE_NS: Final = 150_000
# If this much of the time was not spent in this thread, something else needed the CPU.
PUSHED_ASIDE_NS: Final = 300_000
# Each success earns credit for two failures. Polling continues while there is credit: at least one poll in
# three succeeds. CREDIT_MAX failures in a row use it up.
CREDIT_MAX: Final = 8
CREDIT_FOR_ONE: Final = 2
# Loop iterations until polling is tried again; doubled after each further failure.
REST_MIN: Final = 8
REST_MAX: Final = 64

# With a single CPU, polling would keep clients from running.
PROCESSORS_MIN: Final = 2


def awake_ns_with(processors: float) -> int:
    """How long a broker may poll, given the number of CPUs that it may use."""
    return AWAKE_NS if processors >= PROCESSORS_MIN else 0


class Vigil:
    """Decides whether to poll; Turn does the polling. `used_ns` returns the CPU time of this thread.

    With `awake_ns` 0 it never polls.
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
        """Responses have been sent: whether to poll for requests before sleeping."""
        if self._awake_ns == 0:
            return False
        if self._turns_to_rest > 0:
            self._turns_to_rest -= 1
            return False
        self._used_before_ns = self._used_ns()
        self._begun_ns = self._ticks_ns()
        return True

    def goes_on(self) -> bool:
        """No request has arrived yet: whether to poll once more."""
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
        """A request has arrived while polling."""
        self._credit = min(self._credit + CREDIT_FOR_ONE, CREDIT_MAX)
        self._rest = REST_MIN
