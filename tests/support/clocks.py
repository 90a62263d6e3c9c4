"""A clock that advances only when a test advances it."""


class ManualClock:
    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._now_ms

    def ticks_ns(self) -> int:
        return self._now_ms * 1_000_000

    def used_ns(self) -> int:
        return 0

    def advance(self, ms: int) -> None:
        assert ms >= 0
        self._now_ms += ms
