"""Progress and errors of `barnabas transactions find-hanging`."""

from io import StringIO

import pytest

from barnabas.cli.tool import ToolFailed
from barnabas.cli.transaction.failures import failing, why
from barnabas.cli.transaction.hanging import Watch
from barnabas.client.admin.transactions import SearchProgress, SearchStage
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
def test_the_current_stage_is_named(stage: SearchStage, doing: str) -> None:
    watch = Watch(broker=4)
    watch(SearchProgress(stage, 3, 9))

    assert watch.doing == doing


def test_without_a_broker_leaders_are_asked() -> None:
    watch = Watch(broker=None)
    assert watch.doing == "find hanging transactions"

    watch(SearchProgress(SearchStage.DESCRIBE_PRODUCERS, 0, 1))

    assert watch.doing == "describe producers for 1 partitions on their leaders"


def test_only_the_stage_of_partitions_counts_as_a_search() -> None:
    watch = Watch(broker=1)
    watch(SearchProgress(SearchStage.DESCRIBE_TOPICS, 0, 1))
    assert not watch.searched

    watch(SearchProgress(SearchStage.DESCRIBE_PRODUCERS, 0, 1))
    watch(SearchProgress(SearchStage.LIST_TRANSACTIONS, 0, 1))

    assert watch.searched


def test_progress_is_shown_at_a_terminal_and_erased(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_first_of_several_errors_is_reported() -> None:
    first = Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, about="a-0", message="not for you")
    error = SomeRefused({"a-0": first, "b-0": UnknownTopic(about="b-0")})

    assert why(error) == "not for you"
    assert why(error, {"TOPIC_AUTHORIZATION_FAILED": "as Kafka says"}) == "as Kafka says"


def test_an_unknown_topic_has_kafkas_message_unless_the_broker_sent_one() -> None:
    assert why(UnknownTopic(about="topic a")) == "This server does not host this topic-partition."
    assert (
        why(UnknownTopic(about="a-9", message="no such topic or partition")) == "no such topic or partition"
    )


def test_an_error_names_the_failed_action() -> None:
    with (
        pytest.raises(ToolFailed, match=r"^Failed to list: no broker at h:1: gone$"),
        failing("Failed to list"),
    ):
        raise BrokerUnavailable(["h:1"], "gone")
