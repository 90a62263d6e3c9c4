"""What the parts of the adapter of our own client have in common."""

from barnabas.client import Message
from barnabas.client import Refused as OurRefused
from barnabas.client.admin import PartlyRefused
from barnabas.client.consumer.errors import NoOffset
from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.header import TimestampType
from support.clients.client import Refused, Seen


def refused(error: Exception) -> Refused:
    match error:
        case OurRefused(code=code):
            return Refused(code, str(error))
        case PartlyRefused(refused=several):
            [one] = several.values()
            return Refused(one.code, str(error))
        case NoOffset():
            return Refused(ErrorCode.OFFSET_OUT_OF_RANGE, str(error))
        case _:
            return Refused(None, str(error))


def seen(message: Message) -> Seen:
    return Seen(
        partition=message.partition,
        offset=message.offset,
        timestamp_ms=message.timestamp,
        timestamp_type=TimestampType(message.timestamp_type),
        key=message.key,
        value=message.value,
        headers=tuple(message.headers),
    )
