"""Count the requests of each API and their durations, at minimal cost per request."""

from typing import Final

from barnabas.protocol.api_keys import ApiKey

# Upper bounds of the latency histogram, in nanoseconds: each four times the one before, 64 us to 4 s.
BOUNDS_NS: Final = tuple(64_000 * 4**step for step in range(9))


class ApiStats:
    """One API: number of requests, total duration, and a histogram of durations."""

    __slots__ = ("buckets", "count", "total_ns")

    def __init__(self) -> None:
        self.count = 0
        self.total_ns = 0
        self.buckets = [0] * (len(BOUNDS_NS) + 1)


class RequestStats:
    """All APIs. A duration is the time from the start of decoding a request until its response is ready."""

    def __init__(self) -> None:
        self.apis: Final[dict[ApiKey, ApiStats]] = {}

    def served(self, key: ApiKey, took_ns: int) -> None:
        stats = self.apis.get(key)
        if stats is None:
            stats = self.apis[key] = ApiStats()
        stats.count += 1
        stats.total_ns += took_ns
        slot = 0
        for bound in BOUNDS_NS:
            if took_ns <= bound:
                break
            slot += 1
        stats.buckets[slot] += 1
