"""How far a setting of Kafka's is supported: it works, there is nothing to tune, or it is refused.

The question that decides: could an operator who sets it observe that we ignore it? If so, it has to work or
be refused. Setting.parse_supported() applies this, to a properties file and to a request alike.
"""

from enum import Enum
from typing import Final

from barnabas.base.values import value


class Support(Enum):
    # The setting is acted on.
    WORKS = "supported"
    # The setting only tunes a mechanism of Kafka's that does not exist here. Every valid value is accepted,
    # because no client could tell one from another.
    NOTHING_TO_TUNE = "nothing to tune"
    # Only the default is accepted: another value asks for behaviour that does not exist here.
    UNSUPPORTED = "not supported"


@value
class Status:
    """`reason` tells users why a setting has no effect; it is empty for one that works."""

    support: Support
    reason: str = ""


WORKS: Final = Status(Support.WORKS)


def nothing_to_tune(reason: str) -> Status:
    return Status(Support.NOTHING_TO_TUNE, reason)


def unsupported(reason: str) -> Status:
    return Status(Support.UNSUPPORTED, reason)
