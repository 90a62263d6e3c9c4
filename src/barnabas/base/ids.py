"""Distinct types for ids that must not be mixed up."""

import binascii
from typing import NamedTuple, NewType

from barnabas.base.errors import Malformed

# Sixteen raw bytes. A NewType of bytes: decoding needs no constructor call, and hashing is fast.
# format_uuid() prints it as Kafka does.
Uuid = NewType("Uuid", bytes)

ZERO_UUID = Uuid(bytes(16))

# "+" and "/" are rejected, so that an id has only one text form.
_TO_URL_SAFE = str.maketrans("+/", "-_")
_FROM_URL_SAFE = str.maketrans("-_+/", "+/..")


def format_uuid(value: Uuid) -> str:
    """URL-safe base64 without padding, as in Kafka's tools and meta.properties."""
    text = binascii.b2a_base64(value, newline=False).rstrip(b"=").decode()
    return text.translate(_TO_URL_SAFE)


def parse_uuid(text: str) -> Uuid:
    try:
        raw = binascii.a2b_base64(text.translate(_FROM_URL_SAFE) + "==", strict_mode=True)
    except ValueError:
        raise Malformed("is not URL-safe base64", where=f"uuid {text!r}") from None
    if len(raw) != 16:
        raise Malformed(f"has {len(raw)} bytes, not 16", where=f"uuid {text!r}")
    return Uuid(raw)


class TopicPartition(NamedTuple):
    """One partition of one topic: the unit of order, of replication and of storage."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
