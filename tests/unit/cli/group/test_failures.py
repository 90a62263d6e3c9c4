"""Parsing of partitions and regular expressions, and errors as Java exceptions."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.cli.group.failures import CommandFailed, Misused, Wrapped, failing, java_error
from barnabas.cli.group.partitions import parse_topics
from barnabas.cli.tool import regex_error
from barnabas.client.admin.call import PartlyRefused
from barnabas.client.errors import Refused, RequestTimedOut
from barnabas.protocol.error_codes import ErrorCode


def test_a_topic_option_selects_all_or_some_partitions() -> None:
    assert parse_topics(["orders", "plain:0,2", "x:1:"]) == (
        [TopicPartition("plain", 0), TopicPartition("plain", 2), TopicPartition("x", 1)],
        ["orders"],
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("orders:", "Invalid topic arg 'orders:', expected topic name and partitions"),
        ("orders:0:1", "Invalid topic arg 'orders:0:1', expected topic name and partitions"),
        ("orders:a", "Invalid partition 'a' specified in topic arg 'orders:a''"),
        ("orders:0,,1", "Invalid partition '' specified in topic arg 'orders:0,,1''"),
    ],
)
def test_an_invalid_topic_option_is_misuse(text: str, why: str) -> None:
    with pytest.raises(Misused) as caught:
        parse_topics([text])

    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("orders.*", None),
        ("(?i)orders", None),
        ("a[b", "missing closing ]"),
        ("a(b", "missing closing )"),
        ("a)", "regexp/syntax: internal error"),
        ("a**", "invalid nested repetition operator"),
        ("*a", "missing argument to repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("[z-a]", "invalid character class range"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?P<n", "invalid named capture"),
        ("a\\", "trailing backslash at end of expression"),
        ("\\q", "invalid escape sequence"),
    ],
)
def test_an_invalid_regular_expression_has_the_message_of_re2j(expression: str, fault: str | None) -> None:
    assert regex_error(expression) == fault


def test_an_error_has_javas_exception_name_and_prefers_the_brokers_message() -> None:
    told = Refused(ErrorCode.GROUP_ID_NOT_FOUND, about="group g", message="Group g not found.")
    silent = Refused(ErrorCode.NON_EMPTY_GROUP, about="group g")
    other = Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, about="topic t")

    package = "org.apache.kafka.common.errors"
    assert java_error(told) == f"{package}.GroupIdNotFoundException: Group g not found."
    assert java_error(silent) == f"{package}.GroupNotEmptyException: The group is not empty."
    assert java_error(other) == f"{package}.InvalidTopicException: INVALID_TOPIC_EXCEPTION"
    assert java_error(told, Wrapped.BARE) == "Group g not found."
    assert java_error(silent, Wrapped.NESTED).startswith(
        f"java.util.concurrent.ExecutionException: {package}.GroupNotEmptyException"
    )


def test_the_first_of_several_errors_is_reported() -> None:
    refused = {
        name: Refused(ErrorCode.GROUP_ID_NOT_FOUND, about=name, message=f"no {name}") for name in ("a", "b")
    }

    with pytest.raises(CommandFailed, match=r"^no a$"), failing(Wrapped.BARE):
        raise PartlyRefused(refused, {})


def test_a_timeout_is_not_turned_into_command_failed() -> None:
    with pytest.raises(RequestTimedOut), failing(Wrapped.BARE):
        raise RequestTimedOut("LIST_GROUPS", "the cluster", 5)
