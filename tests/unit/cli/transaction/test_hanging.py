"""What `barnabas transactions find-hanging` says while it searches and when that fails."""

from io import StringIO

import pytest

from barnabas.cli.tool import ToolFailed
from barnabas.cli.transaction.failures import failing, why
from barnabas.cli.transaction.hanging import Watch
from barnabas.client.admin.transactions_hanging import SearchProgress, SearchStage
from barnabas.client.errors import BrokerUnavailable, Refused, SomeRefused, UnknownTopic
from barnabas.protocol.error_codes import ErrorCode


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stage", "doing"),
    [
        (SearchStage.LIST_TOPICS, "list topics"),
        (SearchStage.DESCRIBE_TOPICS, "describe 9 topics"),
        (SearchStage.DESCRIBE_PRODUCERS, "describe producers for 9 partitions on broker 4"),
        (SearchStage.LIST_TRANSACTIONS, "list transactions for 9 producers"),
        (SearchStage.DESCRIBE_TRANSACTIONS, "describe 9 transactions"),
    ],
)
def test_it_is_known_what_was_under_way(stage: SearchStage, doing: str) -> None:
    watch = Watch(broker=4)
    watch(SearchProgress(stage, 3, 9))

    assert watch.doing == doing


def test_without_a_broker_leaders_are_asked() -> None:
    watch = Watch(broker=None)
    assert watch.doing == "find hanging transactions"

    watch(SearchProgress(SearchStage.DESCRIBE_PRODUCERS, 0, 1))

    assert watch.doing == "describe producers for 1 partitions on their leaders"


def test_only_a_search_of_partitions_is_one() -> None:
    watch = Watch(broker=1)
    watch(SearchProgress(SearchStage.DESCRIBE_TOPICS, 0, 1))
    assert not watch.searched

    watch(SearchProgress(SearchStage.DESCRIBE_PRODUCERS, 0, 1))
    watch(SearchProgress(SearchStage.LIST_TRANSACTIONS, 0, 1))

    assert watch.searched


def test_a_terminal_sees_how_far_it_is_and_nothing_is_left_there(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    watch = Watch(broker=1)

    watch(SearchProgress(SearchStage.LIST_TOPICS, 0, 1))
    watch(SearchProgress(SearchStage.DESCRIBE_TOPICS, 0, 2))
    watch(SearchProgress(SearchStage.DESCRIBE_PRODUCERS, 500, 2000))
    watch.clear()

    assert "0 of 2 topics (0 %)" in terminal.getvalue()
    assert "500 of 2,000 partitions (25 %)" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_of_several_refusals_the_first_is_told() -> None:
    first = Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, about="a-0", message="not for you")
    error = SomeRefused({"a-0": first, "b-0": UnknownTopic(about="b-0")})

    assert why(error) == "not for you"
    assert why(error, {"TOPIC_AUTHORIZATION_FAILED": "as Kafka says"}) == "as Kafka says"


def test_a_topic_that_is_not_there_is_told_in_kafkas_words_unless_somebody_has_better_ones() -> None:
    assert why(UnknownTopic(about="topic a")) == "This server does not host this topic-partition."
    assert why(UnknownTopic(about="a-9", message="no broker knows of it")) == "no broker knows of it"


def test_what_fails_is_said_with_what_was_to_be_done() -> None:
    with (
        pytest.raises(ToolFailed, match=r"^Failed to list: no broker at h:1: gone$"),
        failing("Failed to list"),
    ):
        raise BrokerUnavailable(["h:1"], "gone")
