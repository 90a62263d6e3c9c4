"""Descriptions of topics: Kafka's lines, partition filters, and JSON."""

from dataclasses import replace
from typing import Any

import pytest

from barnabas.base.ids import parse_uuid
from barnabas.cli.tool import ToolFailed
from barnabas.cli.topic.description import Described, Filters, Moving, document, lines
from barnabas.client.admin.configs import ConfigEntry, ConfigSource
from barnabas.client.admin.topic_descriptions import PartitionDescription, TopicDescription

TOPIC_ID = "8UFBlDBzRM2WGJual5ztlg"


def partition(number: int, **given: Any) -> PartitionDescription:
    fields: dict[str, Any] = {
        "leader": 1,
        "leader_epoch": 3,
        "replicas": (1, 2, 3),
        "isr": (1, 2, 3),
        "offline": (),
        "elr": (),
        "last_known_elr": (),
    }
    return PartitionDescription(partition=number, **{**fields, **given})


def entry(name: str, value: str, source: ConfigSource) -> ConfigEntry:
    return ConfigEntry(name=name, value=value, source=source, read_only=False, sensitive=False)


def described(*partitions: PartitionDescription, moving: dict[int, Moving] | None = None) -> Described:
    settings = [
        entry("cleanup.policy", "delete", ConfigSource.DEFAULT_CONFIG),
        entry("min.insync.replicas", "2", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        entry("retention.ms", "5", ConfigSource.DYNAMIC_TOPIC_CONFIG),
    ]
    return Described(
        topic=TopicDescription(
            name="orders",
            topic_id=parse_uuid(TOPIC_ID),
            internal=False,
            partitions=partitions,
            operations=None,
        ),
        settings={each.name: each for each in settings},
        moving=moving or {},
        live_brokers=frozenset((1, 2)),
    )


def shown(topic: Described, filters: Filters) -> list[int]:
    return [each.partition for each in topic.partitions(filters)]


# A healthy partition, and one for each kind of problem.
TROUBLED = described(
    partition(0),
    partition(1, isr=(1, 2)),
    partition(2, isr=(1,)),
    partition(3, leader=-1, isr=()),
    partition(4, leader=3),
)


def test_a_topic_is_a_line_and_its_partitions_are_lines_after_it() -> None:
    topic = described(partition(0, elr=(3,)), partition(1, leader=-1, isr=(), elr=None, last_known_elr=None))

    assert list(lines([topic], Filters())) == [
        f"Topic: orders\tTopicId: {TOPIC_ID}\tPartitionCount: 2\tReplicationFactor: 3"
        "\tConfigs: min.insync.replicas=2,retention.ms=5",
        "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: 3\tLastKnownElr: ",
        "\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 1,2,3\tIsr: \tElr: N/A\tLastKnownElr: N/A",
    ]


@pytest.mark.parametrize(
    ("filters", "partitions"),
    [
        (Filters(), [0, 1, 2, 3, 4]),
        (Filters(under_replicated=True), [1, 2, 3]),
        (Filters(unavailable=True), [3, 4]),
        (Filters(under_min_isr=True), [2, 3]),
        (Filters(at_min_isr=True), [1]),
        (Filters(at_min_isr=True, unavailable=True), [1, 3, 4]),
        (Filters(overrides_only=True), []),
    ],
)
def test_each_filter_shows_its_partitions(filters: Filters, partitions: list[int]) -> None:
    assert shown(TROUBLED, filters) == partitions


def test_a_partition_filter_omits_the_topic_line() -> None:
    [only] = lines([TROUBLED], Filters(at_min_isr=True))

    assert only.startswith("\tTopic: orders\tPartition: 1\t")


def test_topics_with_overrides_have_a_setting_that_is_not_a_default() -> None:
    plain = replace(described(partition(0)), settings={})

    [line] = lines([plain, described(partition(0))], Filters(overrides_only=True))

    assert line.startswith(f"Topic: orders\tTopicId: {TOPIC_ID}\t")
    assert document([plain], Filters(overrides_only=True)) == {"topics": []}


def test_replicas_that_are_being_added_do_not_count_yet() -> None:
    moving = {0: Moving(replicas=(1, 2, 3), adding=(3,), removing=())}
    topic = described(partition(0, isr=(1, 2)), moving=moving)

    head, line = lines([topic], Filters())

    assert "\tReplicationFactor: 2\t" in head
    assert "\tIsr: 1,2\tAdding Replicas: 3\tRemoving Replicas: \tElr: " in line
    assert shown(topic, Filters(under_replicated=True)) == []


def test_missing_min_isr_is_an_error() -> None:
    silent = replace(described(partition(0)), settings={})

    with pytest.raises(ToolFailed, match=r"did not return min\.insync\.replicas of topic orders"):
        list(lines([silent], Filters(at_min_isr=True)))


def test_the_document_has_the_data_of_the_lines() -> None:
    topic = described(partition(0, leader=-1, elr=None))

    assert document([topic], Filters()) == {
        "topics": [
            {
                "topic": "orders",
                "topicId": TOPIC_ID,
                "internal": False,
                "partitionCount": 1,
                "replicationFactor": 3,
                "configs": {"min.insync.replicas": "2", "retention.ms": "5"},
                "partitions": [
                    {
                        "partition": 0,
                        "leader": None,
                        "leaderEpoch": 3,
                        "replicas": [1, 2, 3],
                        "isr": [1, 2, 3],
                        "elr": None,
                        "lastKnownElr": [],
                    }
                ],
            }
        ]
    }
