"""Group member settings: Kafka's defaults, names of assignors, and conflicts."""

import pytest

from barnabas.base.settings import InvalidSetting
from barnabas.client.consumer.settings import ConsumerSettings, parse_consumer_settings


def parsed(**named: object) -> ConsumerSettings:
    return parse_consumer_settings({"bootstrap.servers": "localhost:9092"}, named)


def test_the_defaults_are_kafkas() -> None:
    settings = parsed(group_id="g")

    assert (settings.session_timeout_ms, settings.heartbeat_interval_ms) == (45_000, 3_000)
    assert (settings.max_poll_interval_ms, settings.auto_commit_interval_ms) == (300_000, 5_000)
    assert (settings.group_protocol, settings.assignors) == ("classic", ("range", "cooperative-sticky"))
    assert (settings.auto_commits, settings.exclude_internal_topics) == (True, True)
    assert (settings.group_instance_id, settings.group_remote_assignor) == (None, None)


def test_assignors_go_by_their_names_and_by_kafkas_classes() -> None:
    java = "org.apache.kafka.clients.consumer."
    given = [
        f"{java}CooperativeStickyAssignor",
        "roundrobin",
        f"{java}StickyAssignor",
        f"{java}RangeAssignor",
    ]

    found = parsed(partition_assignment_strategy=given).assignors

    assert found == ("cooperative-sticky", "roundrobin", "sticky", "range")


@pytest.mark.parametrize(
    "given", ["", "best", "range,range", "range,org.apache.kafka.clients.consumer.RangeAssignor"]
)
def test_invalid_lists_of_assignors(given: str) -> None:
    with pytest.raises(InvalidSetting, match="a list of range, roundrobin, sticky, cooperative-sticky"):
        parsed(partition_assignment_strategy=given)


def test_without_a_group_nothing_is_committed_and_asking_for_it_is_refused() -> None:
    assert not parsed().auto_commits
    assert not parsed(enable_auto_commit=False).auto_commits
    with pytest.raises(InvalidSetting, match=r"needs group\.id"):
        parsed(enable_auto_commit=True)


@pytest.mark.parametrize(
    "given",
    [
        {"session_timeout_ms": 10_000},
        {"heartbeat_interval_ms": 1_000},
        {"partition_assignment_strategy": "range"},
    ],
)
def test_settings_of_the_broker_are_rejected_with_the_consumer_protocol(given: dict[str, object]) -> None:
    with pytest.raises(InvalidSetting, match="set at the broker"):
        parsed(group_id="g", group_protocol="consumer", **given)

    assert parsed(group_id="g", **given)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"group_id": ""}, "a name"),
        ({"group_protocol": "new"}, "one of classic, consumer"),
        ({"group_remote_assignor": "uniform"}, "needs group.protocol=consumer"),
        ({"heartbeat_interval_ms": 45_000}, "below session.timeout.ms=45000"),
    ],
)
def test_other_conflicting_settings_are_refused(given: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidSetting, match=why):
        parsed(**{"group_id": "g", **given})
