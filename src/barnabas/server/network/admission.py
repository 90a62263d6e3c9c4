"""The limits on the connections of one listener (pure): which client may connect, and when.

Kafka's limits behave as in Kafka 4.3. At max.connections, and above max.connection.creation.rate, clients
wait in the kernel's backlog until there is room. Above max.connections.per.ip a client is accepted and
closed at once. The same happens, by a limit that Kafka does not have, when the descriptors reserved for
connections are used up, so that logs keep theirs. acceptor.py and pool.py carry out the decisions.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from barnabas.base.values import value

NO_LIMIT: Final = 2**31 - 1
# Kafka's quota.window.num and quota.window.size.seconds: a rate is averaged over the last ten to eleven
# seconds, so ten seconds' worth of clients may connect at once.
WINDOWS: Final = 11
WINDOW_MS: Final = 1000
# The maximum delay of one connection, however far the rate is exceeded. The same as Kafka's.
THROTTLE_MS_MAX: Final = 1000
# Minimum time between two log lines about refused connections.
REFUSALS_LOGGED_MS: Final = 10_000


@value(kw_only=True)
class ConnectionLimits:
    """Replaced as a whole when a setting changes. A negative idle time means no limit, as in Kafka."""

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
    """The number of connections made in each of the last windows."""

    def __init__(self) -> None:
        # Start time and number of connections of each window.
        self._windows: deque[tuple[int, int]] = deque()

    def throttle_ms(self, now_ms: int, per_second_max: int) -> int:
        """Count a connection. Return how long it must wait to keep the rate within the limit."""
        windows = self._windows
        while windows and now_ms - windows[0][0] >= WINDOWS * WINDOW_MS:
            windows.popleft()
        if windows and now_ms - windows[-1][0] < WINDOW_MS:
            began_ms, count = windows.pop()
            windows.append((began_ms, count + 1))
        else:
            windows.append((now_ms, 1))
        elapsed_ms = now_ms - windows[0][0]
        # Like Kafka, treat the time before the first window as windows without connections.
        elapsed_ms += max(0, WINDOWS - 1 - elapsed_ms // WINDOW_MS) * WINDOW_MS
        excess = sum(count for _, count in windows) - per_second_max * elapsed_ms / 1000
        if excess <= 0:
            return 0
        if per_second_max == 0:
            return THROTTLE_MS_MAX
        return min(THROTTLE_MS_MAX, round(excess * 1000 / per_second_max))


class DescriptorShare:
    """The file descriptors for connections, shared by all listeners of the process."""

    def __init__(self, most: int = NO_LIMIT) -> None:
        self.most: Final = most
        self.used = 0


class Admitted:
    """Counts the connections of all listeners that share their limits."""

    def __init__(self, descriptors: DescriptorShare | None = None) -> None:
        self.count = 0
        self.hosts: Counter[str] = Counter()
        self.rate: Final = CreationRate()
        self.descriptors: Final = descriptors or DescriptorShare()
        # Called when a connection has closed: others may be waiting for room.
        self.on_room: list[Callable[[], None]] = []
        # Called in order, until one returns True, to close a connection when there are too many.
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
    """The limits of one listener. Broker-wide limits do not apply to a protected one, which brokers use."""

    def __init__(
        self, limits: ConnectionLimits, admitted: Admitted | None = None, *, is_protected: bool = False
    ) -> None:
        self.limits = limits
        self.admitted: Final = admitted or Admitted()
        self.is_protected: Final = is_protected
        self.count = 0
        # How often connections had to wait.
        self.waits = 0
        self._rate: Final = CreationRate()
        self._logged_ms: int | None = None
        self._not_logged = 0

    @property
    def has_room(self) -> bool:
        """Whether one more connection may be accepted now. Otherwise it waits in the backlog."""
        limits = self.limits
        if self.count >= limits.listener_max:
            return False
        return self.is_protected or self.admitted.count < limits.connections_max

    @property
    def excess(self) -> int:
        """How many connections must be closed: a protected listener needs room, or a limit was lowered."""
        if self.is_protected:
            return 0
        return min(self.count, self.admitted.count - self.limits.connections_max)

    def throttle_ms(self, now_ms: int) -> int:
        """Count a new connection. Return how long it, and those behind it, must wait."""
        limits = self.limits
        wait_ms = 0
        if limits.rate_max != NO_LIMIT and not self.is_protected:
            wait_ms = self.admitted.rate.throttle_ms(now_ms, limits.rate_max)
        if limits.listener_rate_max != NO_LIMIT:
            wait_ms = max(wait_ms, self._rate.throttle_ms(now_ms, limits.listener_rate_max))
        return wait_ms

    def make_room(self) -> None:
        """Close another connection if one of a protected listener exceeds max.connections."""
        if self.is_protected and self.admitted.count > self.limits.connections_max:
            for callback in self.admitted.on_excess:
                if callback():
                    break

    def enter(self, host: str) -> str | None:
        """Count a connection and return None, or return why it must be closed at once."""
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
        """Count a refusal. Return how many to log now; 0 if the last line is too recent."""
        self._not_logged += 1
        if self._logged_ms is not None and now_ms - self._logged_ms < REFUSALS_LOGGED_MS:
            return 0
        self._logged_ms = now_ms
        count, self._not_logged = self._not_logged, 0
        return count
