"""Cut error messages that quote so much of a request that they exceed the maximum string length.

A name of 32,767 bytes is a valid string. A message that quotes it is longer, and the response could not be
encoded: Kafka then closes the connection. Called when encoding fails, and for responses made in slices.
"""

from collections.abc import Iterable
from typing import Any, Final

from barnabas.protocol.schema.fields import Kind
from barnabas.protocol.schema.struct import schema_of
from barnabas.protocol.wire import STRING_BYTES_MAX

# Characters that remain of a message that is too long.
MESSAGE_CHARS_MAX: Final = 1_000
_MESSAGE: Final = "error_message"
_CUT: Final = "..."


def cut_messages(message: Any) -> bool:
    """Cut the error messages of a response that are too long, in place. Return whether there are any."""
    is_cut = False
    for field in schema_of(type(message)).fields:
        value = getattr(message, field.name)
        if field.name == _MESSAGE:
            if value is not None and _is_too_long(value):
                setattr(message, field.name, value[:MESSAGE_CHARS_MAX] + _CUT)
                is_cut = True
        elif field.kind is Kind.ARRAY and value and field.item is not None and field.item.struct is not None:
            is_cut = cut_all_messages(value) or is_cut
    return is_cut


def cut_all_messages(items: Iterable[Any]) -> bool:
    """The same for the items of a response list."""
    is_cut = False
    for item in items:
        is_cut = cut_messages(item) or is_cut
    return is_cut


def _is_too_long(text: str) -> bool:
    # A character takes at most four bytes.
    return len(text) * 4 > STRING_BYTES_MAX and len(text.encode("utf-8", "surrogatepass")) > STRING_BYTES_MAX
