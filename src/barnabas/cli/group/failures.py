"""What goes wrong, in the words of Kafka's tool: they are Java's, because it prints the exceptions it gets.

The tool ends with 0 whatever the broker refused, and so does ours; with --json it ends with 1.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Final

from barnabas.cli.tool import ToolFailed

if TYPE_CHECKING:
    from barnabas.client.errors import Refused
    from barnabas.protocol.error_codes import ErrorCode

_PACKAGE: Final = "org.apache.kafka.common.errors."
# Java's classes and what they say by themselves. Others are named after their codes.
_SAID: Final = {
    "LEADER_NOT_AVAILABLE": (
        "LeaderNotAvailableException",
        "There is no leader for this topic-partition as we are in the middle of a leadership election.",
    ),
    "UNKNOWN_TOPIC_OR_PARTITION": (
        "UnknownTopicOrPartitionException",
        "This server does not host this topic-partition.",
    ),
    "COORDINATOR_LOAD_IN_PROGRESS": (
        "CoordinatorLoadInProgressException",
        "The coordinator is loading and hence can't process requests.",
    ),
    "COORDINATOR_NOT_AVAILABLE": (
        "CoordinatorNotAvailableException",
        "The coordinator is not available.",
    ),
    "NOT_COORDINATOR": ("NotCoordinatorException", "This is not the correct coordinator."),
    "INVALID_GROUP_ID": ("InvalidGroupIdException", "The configured groupId is invalid."),
    "UNKNOWN_MEMBER_ID": ("UnknownMemberIdException", "The coordinator is not aware of this member."),
    "TOPIC_AUTHORIZATION_FAILED": ("TopicAuthorizationException", "Topic authorization failed."),
    "GROUP_AUTHORIZATION_FAILED": ("GroupAuthorizationException", "Group authorization failed."),
    "NON_EMPTY_GROUP": ("GroupNotEmptyException", "The group is not empty."),
    "GROUP_ID_NOT_FOUND": ("GroupIdNotFoundException", "The group id does not exist."),
    "GROUP_SUBSCRIBED_TO_TOPIC": (
        "GroupSubscribedToTopicException",
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it.",
    ),
}


class CommandFailed(ToolFailed):
    """What could not be done, after `Executing consumer group command failed due to`."""


class Misused(ToolFailed):
    """Options that cannot be, which only shows when the tool is at work: it ends with the usage and 1."""


class Wrapped(Enum):
    """How the exception reaches the line that prints it: bare, as a cause, or as the cause of a cause."""

    BARE = ""
    CAUSE = _PACKAGE
    NESTED = f"java.util.concurrent.ExecutionException: {_PACKAGE}"


def print_error(text: str) -> None:
    """What goes wrong goes to stdout, as in Kafka's tool."""
    print(f"\nError: {text}")


def message_of(code: "ErrorCode", said: str | None = None) -> str:
    """What the broker said, or what Java's exception says when it said nothing."""
    return said or _SAID.get(code.name, ("", code.name))[1]


def java_error(error: "Refused", wrapped: Wrapped = Wrapped.CAUSE) -> str:
    message = message_of(error.code, error.message)
    if wrapped is Wrapped.BARE:
        return message
    words = error.code.name.title().replace("_", "")
    name = _SAID.get(error.code.name, (f"{words.removesuffix('Exception')}Exception", ""))[0]
    return f"{wrapped.value}{name}: {message}"


@contextmanager
def failing(wrapped: Wrapped) -> Iterator[None]:
    """What a broker refuses in here becomes CommandFailed; of several refusals, the first."""
    from barnabas.client.errors import Refused, SomeRefused

    try:
        yield
    except SomeRefused as error:
        first = next(iter(error.refused.values()))
        raise CommandFailed(java_error(first, wrapped)) from error
    except Refused as error:
        raise CommandFailed(java_error(error, wrapped)) from error
