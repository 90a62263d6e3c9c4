"""Log lines about a full disk: one when it is found full, at most one a minute, and one when it has room."""

import logging
from typing import Final

logger = logging.getLogger(__name__)

# How long after a line the next one may be written.
QUIET_MS: Final = 60_000


class FullDisk:
    """Whether the disk of a directory is full, and when that was last logged."""

    def __init__(self, path: str) -> None:
        self.path: Final = path
        # Whether a write failed, and none was seen to succeed since.
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
            "disk full, writes are refused until there is room path=%s failed_writes=%d",
            self.path,
            self._refused,
        )
        self._logged_ms, self._is_logged, self._refused = now_ms, True, 0

    def found_room(self) -> None:
        """A write succeeded."""
        if self.is_full and self._is_logged:
            logger.info("disk has room again path=%s", self.path)
        self.is_full = self._is_logged = False
