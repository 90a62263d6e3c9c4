"""Errors of record batches.

Most are subclasses of Malformed, so a decoder's caller catches one type, and the table of wire codes can
still tell a corrupt batch from one that a producer may not send.
"""

from barnabas.base.errors import BarnabasError, Malformed


class CorruptBatch(Malformed):
    """The batch is truncated, has a wrong length or CRC, or its records do not parse."""


class InvalidBatch(Malformed):
    """The batch is well formed, but this sender may not send it."""


class UnsupportedMagic(Malformed):
    """The batch is not of version 2."""


class UnknownCodec(Malformed):
    """The attributes have an unknown compression codec."""


class DecompressionFailed(Malformed):
    """The compressed record area is invalid."""


class DecompressedTooLarge(Malformed):
    """The decompressed record area would exceed the limit."""


class RecordTooLarge(BarnabasError):
    """A record does not fit in any batch. Not a Malformed, because it occurs when we encode."""

    def __init__(self, *, size: int, limit: int) -> None:
        super().__init__(f"records of at least {size} bytes exceed the limit of {limit} bytes")


class TimestampOutOfRange(BarnabasError):
    """A record's timestamp must be milliseconds since 1970, or -1 for none."""

    def __init__(self, timestamp: int) -> None:
        super().__init__(
            f"timestamp {timestamp} is out of range; use milliseconds since 1970, or -1 for none"
        )


def batch_at(at: int) -> str:
    """Format a batch's position for error messages."""
    return f"batch at byte {at}"
