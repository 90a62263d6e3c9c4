"""What can be wrong with a record batch.

Each is a Malformed, so a caller that only wants to know "bad bytes" catches one type, and the table of
wire codes can still tell a corrupt batch from one that a producer was not allowed to send.
"""

from barnabas.base.errors import BarnabasError, Malformed


class CorruptBatch(Malformed):
    """Truncated, a length that lies, a CRC that does not match, or records that do not parse."""


class InvalidBatch(Malformed):
    """Well formed, but not what this sender may send."""


class UnsupportedMagic(Malformed):
    """Not a version 2 batch."""


class UnknownCodec(Malformed):
    """The attributes name a compression codec that does not exist."""


class DecompressionFailed(Malformed):
    """The compressed record area is not what its codec says it is."""


class DecompressedTooLarge(Malformed):
    """The record area would unpack to more than the limit in force."""


class RecordTooLarge(BarnabasError):
    """More than any batch has room for. Not a Malformed: it is ours to write, not someone else's bytes."""

    def __init__(self, *, size: int, limit: int) -> None:
        super().__init__(f"records of {size} bytes or more are above the limit of {limit}")


class TimestampOutOfRange(BarnabasError):
    """A record's time is milliseconds since 1970, or -1 for none."""

    def __init__(self, timestamp: int) -> None:
        super().__init__(f"timestamp {timestamp} is out of range; -1 means that there is none")


def batch_at(at: int) -> str:
    """Name a batch the way every error message here does."""
    return f"batch at byte {at}"
