"""What a shard's shell is given: the partition that is its log."""

from typing import Protocol

from barnabas.base.errors import BarnabasError
from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.header import Codec


class CannotWrite(BarnabasError):
    """The log took nothing, or may not be the one that counts any more. What the waiting are to be told."""

    def __init__(self, code: ErrorCode, why: str) -> None:
        super().__init__(why)
        self.code = code


class LedPartition(Protocol):
    """A partition of an internal topic, for as long as this broker leads it."""

    @property
    def name(self) -> str:
        """For the log: __consumer_offsets-7."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def committed_offset(self) -> int:
        """The high watermark: what lies before it is on all replicas that count."""

    @property
    def batch_bytes_max(self) -> int:
        """How large a batch may be."""

    @property
    def codec(self) -> Codec: ...

    def append(self, batch: bytes, now_ms: int) -> int:
        """Append one batch, and return the offset after it. CannotWrite if that is not possible."""

    async def read(self, offset: int, bytes_max: int) -> tuple[bytes, int]:
        """Batches from that offset on, the first in any case; none at the end."""
