"""Words of the command line and of errors: partitions, regular expressions, Java's exceptions."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.cli.group.failures import CommandFailed, Misused, Wrapped, failing, java_error
from barnabas.cli.group.partitions import parse_topics
from barnabas.cli.group.regular_expressions import fault_of
from barnabas.client.admin.call import PartlyRefused
from barnabas.client.errors import Refused, RequestTimedOut
from barnabas.protocol.error_codes import ErrorCode


def test_a_topic_is_all_of_it_or_some_of_its_partitions() -> None:
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
def test_a_topic_that_cannot_be_is_misuse(text: str, why: str) -> None:
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
def test_a_regular_expression_is_judged_in_the_words_of_re2j(expression: str, fault: str | None) -> None:
    assert fault_of(expression) == fault


def test_a_refusal_has_the_name_of_javas_exception_and_the_brokers_words_before_its_own() -> None:
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


def test_of_several_refusals_the_first_is_told() -> None:
    refused = {
        name: Refused(ErrorCode.GROUP_ID_NOT_FOUND, about=name, message=f"no {name}") for name in ("a", "b")
    }

    with pytest.raises(CommandFailed, match=r"^no a$"), failing(Wrapped.BARE):
        raise PartlyRefused(refused, {})


def test_silence_is_no_refusal() -> None:
    with pytest.raises(RequestTimedOut), failing(Wrapped.BARE):
        raise RequestTimedOut("LIST_GROUPS", "the cluster", 5)
