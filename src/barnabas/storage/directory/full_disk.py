"""Log lines about a full disk: at most one a minute while it is full, and one when it has room again."""

import logging
from typing import Final

logger = logging.getLogger(__name__)

# Minimum time between two log lines.
QUIET_MS: Final = 60_000


class FullDisk:
    """Whether the disk of a directory is full, and when that was last logged."""

    def __init__(self, path: str) -> None:
        self.path: Final = path
        # The last write failed for lack of space.
        self.is_full = False
        self._is_logged = False
        self._logged_ms = -QUIET_MS
        self._refused = 0

    def found_full(self, now_ms: int) -> None:
        """A write failed for lack of room."""
        self.is_full = True
        self._refused += 1
        if now_ms - self._logged_ms < QUIET_MS:
            return
        logger.error(
            "disk full, writes fail until space is freed path=%s failed_writes=%d",
            self.path,
            self._refused,
        )
        self._logged_ms, self._is_logged, self._refused = now_ms, True, 0

    def found_room(self) -> None:
        """A write succeeded."""
        if self.is_full and self._is_logged:
            logger.info("disk has room again path=%s", self.path)
        self.is_full = self._is_logged = False
