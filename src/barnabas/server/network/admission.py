"""The limits on the connections of one listener (pure): which client may connect, and when.

Kafka's limits behave as in Kafka 4.3. At max.connections, and above max.connection.creation.rate, clients
wait in the kernel's backlog until there is room. Above max.connections.per.ip a client is accepted and
closed at once. The same happens, by a limit of our own, when the descriptors for connections are used up:
logs keep theirs. accepting.py and pool.py carry out what is decided here.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from barnabas.base.values import value

NO_LIMIT: Final = 2**31 - 1
# Kafka's quota.window.num and quota.window.size.seconds: a rate is that of the last ten to eleven seconds, so
# that ten seconds' worth of clients may come at once.
WINDOWS: Final = 11
WINDOW_MS: Final = 1000
# The longest that one connection keeps the others waiting, however far the rate is exceeded. Kafka's too.
THROTTLE_MS_MAX: Final = 1000
# Refusals are logged together, this often at most.
REFUSALS_LOGGED_MS: Final = 10_000


@value(kw_only=True)
class ConnectionLimits:
    """Replaced as a whole when a setting changes. A negative idle time is no limit, as in Kafka."""

    connections_max: int
    per_host_max: int
    per_host_overrides: dict[str, int]
    idle_ms: int
    listener_max: int = NO_LIMIT
    rate_max: int = NO_LIMIT
    listener_rate_max: int = NO_LIMIT
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1


class CreationRate:
    """How many connections were made in each of the last windows."""

    def __init__(self) -> None:
        # When each began, and how many came in it.
        self._windows: deque[tuple[int, int]] = deque()

    def throttle_ms(self, now_ms: int, per_second_max: int) -> int:
        """Count a connection; how long it has to wait so that the rate is not above the limit."""
        windows = self._windows
        while windows and now_ms - windows[0][0] >= WINDOWS * WINDOW_MS:
            windows.popleft()
        if windows and now_ms - windows[-1][0] < WINDOW_MS:
            began_ms, count = windows.pop()
            windows.append((began_ms, count + 1))
        else:
            windows.append((now_ms, 1))
        elapsed_ms = now_ms - windows[0][0]
        # As if it had been as quiet before the first window as Kafka assumes.
        elapsed_ms += max(0, WINDOWS - 1 - elapsed_ms // WINDOW_MS) * WINDOW_MS
        excess = sum(count for _, count in windows) - per_second_max * elapsed_ms / 1000
        if excess <= 0:
            return 0
        if per_second_max == 0:
            return THROTTLE_MS_MAX
        return min(THROTTLE_MS_MAX, round(excess * 1000 / per_second_max))


class DescriptorShare:
    """The descriptors for connections, of all listeners of the process."""

    def __init__(self, most: int = NO_LIMIT) -> None:
        self.most: Final = most
        self.used = 0


class Admitted:
    """The connections of all listeners that share their limits, counted."""

    def __init__(self, descriptors: DescriptorShare | None = None) -> None:
        self.count = 0
        self.hosts: Counter[str] = Counter()
        self.rate: Final = CreationRate()
        self.descriptors: Final = descriptors or DescriptorShare()
        # Told when one has left: clients may wait for the room.
        self.on_room: list[Callable[[], None]] = []
        # Asked in turn to close somebody when there are too many; each says whether it did.
        self.on_excess: list[Callable[[], bool]] = []

    def add(self, host: str) -> None:
        self.count += 1
        self.hosts[host] += 1
        self.descriptors.used += 1

    def remove(self, host: str) -> None:
        self.count -= 1
        self.descriptors.used -= 1
        self.hosts[host] -= 1
        if self.hosts[host] == 0:
            del self.hosts[host]
        for callback in self.on_room:
            callback()


class Admission:
    """The limits of one listener. Those of the broker do not hold for a protected one: brokers come by it."""

    def __init__(
        self, limits: ConnectionLimits, admitted: Admitted | None = None, *, is_protected: bool = False
    ) -> None:
        self.limits = limits
        self.admitted: Final = admitted or Admitted()
        self.is_protected: Final = is_protected
        self.count = 0
        # How often clients were kept waiting.
        self.waits = 0
        self._rate: Final = CreationRate()
        self._logged_ms: int | None = None
        self._not_logged = 0

    @property
    def has_room(self) -> bool:
        """Whether one more may come now. Otherwise it waits in the backlog."""
        limits = self.limits
        if self.count >= limits.listener_max:
            return False
        return self.is_protected or self.admitted.count < limits.connections_max

    @property
    def excess(self) -> int:
        """How many of this listener have to go: a protected one took their places, or a limit was lowered."""
        if self.is_protected:
            return 0
        return min(self.count, self.admitted.count - self.limits.connections_max)

    def throttle_ms(self, now_ms: int) -> int:
        """Count a connection that came; how long it has to wait, and those behind it."""
        limits = self.limits
        wait_ms = 0
        if limits.rate_max != NO_LIMIT and not self.is_protected:
            wait_ms = self.admitted.rate.throttle_ms(now_ms, limits.rate_max)
        if limits.listener_rate_max != NO_LIMIT:
            wait_ms = max(wait_ms, self._rate.throttle_ms(now_ms, limits.listener_rate_max))
        return wait_ms

    def make_room(self) -> None:
        """Have somebody closed for each connection of a protected listener that is one too many."""
        if self.is_protected and self.admitted.count > self.limits.connections_max:
            for callback in self.admitted.on_excess:
                if callback():
                    break

    def enter(self, host: str) -> str | None:
        """Count who comes in; or why it has to be closed at once."""
        there = self.admitted
        if there.descriptors.used >= there.descriptors.most:
            return "all file descriptors for connections are in use"
        if there.hosts[host] >= self.limits.per_host_overrides.get(host, self.limits.per_host_max):
            return "too many connections from this address"
        self.count += 1
        there.add(host)
        return None

    def leave(self, host: str) -> None:
        self.count -= 1
        self.admitted.remove(host)

    def to_log(self, now_ms: int) -> int:
        """How many were refused since the last line about it; 0 if it is too early for another."""
        self._not_logged += 1
        if self._logged_ms is not None and now_ms - self._logged_ms < REFUSALS_LOGGED_MS:
            return 0
        self._logged_ms = now_ms
        count, self._not_logged = self._not_logged, 0
        return count
