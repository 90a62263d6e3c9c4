"""Errors in the format of Kafka's tool, which prints Java exceptions.

Kafka's tool exits with 0 after an error from a broker, and so does ours; with --json ours exits with 1.
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
# Java classes and their default messages. Other classes are named after their error codes.
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
    """The command failed; printed after `Executing consumer group command failed due to`."""


class Misused(ToolFailed):
    """Options that prove invalid only after the start: the tool prints the usage and exits with 1."""


class Wrapped(Enum):
    """How Java wraps the exception that is printed: not at all, as a cause, or as the cause of a cause."""

    BARE = ""
    CAUSE = _PACKAGE
    NESTED = f"java.util.concurrent.ExecutionException: {_PACKAGE}"


def print_error(text: str) -> None:
    """Print an error to stdout, as Kafka's tool does."""
    print(f"\nError: {text}")


def message_of(code: "ErrorCode", said: str | None = None) -> str:
    """Return the broker's message, or the default message of Java's exception without one."""
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
    """Turn an error from a broker into CommandFailed; of several errors, the first."""
    from barnabas.client.errors import Refused, SomeRefused

    try:
        yield
    except SomeRefused as error:
        first = next(iter(error.refused.values()))
        raise CommandFailed(java_error(first, wrapped)) from error
    except Refused as error:
        raise CommandFailed(java_error(error, wrapped)) from error
