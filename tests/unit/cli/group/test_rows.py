"""Rows of a group: their order, lag, and the age of unread records."""

from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.cli.group.rows import PartitionRow, age_s, rows_of
from barnabas.client.admin.group_offsets import CommittedOffset
from barnabas.client.admin.groups import GroupDescription, GroupState, GroupType, MemberDescription
from barnabas.client.metadata import Node

ORDERS = [TopicPartition("orders", number) for number in range(4)]
NOW_MS = 1_000_000


def member(name: str, *assignment: TopicPartition) -> MemberDescription:
    return MemberDescription(
        id=name,
        instance_id=None,
        rack=None,
        client_id=f"client of {name}",
        host=f"/{name}",
        assignment=assignment,
        target=None,
        epoch=None,
        upgraded=None,
    )


def group(*members: MemberDescription) -> GroupDescription:
    return GroupDescription(
        group="g",
        type=GroupType.CLASSIC,
        state=GroupState.STABLE,
        protocol_type="consumer",
        assignor="range",
        coordinator=Node(1, "h", 1),
        members=members,
        epoch=None,
        assignment_epoch=None,
        operations=None,
    )


def row(**given: Any) -> PartitionRow:
    fields: dict[str, Any] = {"offset": 3, "log_end": 10, "leader_epoch": None, "metadata": None}
    owner = {"consumer_id": "-", "host": "-", "client_id": "-"}
    return PartitionRow(tp=ORDERS[0], **{**fields, **owner, **given})


def test_members_with_most_partitions_come_first_and_unassigned_partitions_last() -> None:
    members = (member("one", ORDERS[3]), member("idle"), member("two", ORDERS[1], ORDERS[2]))
    committed = {tp: CommittedOffset(offset=7) for tp in (ORDERS[3], ORDERS[0])}

    rows = rows_of(group(*members), committed, dict.fromkeys(ORDERS, 9))

    assert [(each.tp.partition, each.consumer_id, each.lag) for each in rows] == [
        (1, "two", None),
        (2, "two", None),
        (3, "one", 2),
        (0, "-", 2),
    ]


@pytest.mark.parametrize(
    ("known", "time", "age"),
    [
        (row(), NOW_MS - 2500, 2.5),
        # Only transaction markers follow.
        (row(), None, 0.0),
        (row(), -1, None),
        # The producer's clock is ahead of ours.
        (row(), NOW_MS + 5, 0.0),
        (row(offset=10), NOW_MS - 2500, 0.0),
        (row(offset=12), NOW_MS - 2500, 0.0),
        (row(offset=None), NOW_MS - 2500, None),
        (row(log_end=None), NOW_MS - 2500, None),
    ],
)
def test_an_age_is_that_of_the_first_unread_record(
    known: PartitionRow, time: int | None, age: float | None
) -> None:
    assert age_s(known, {ORDERS[0]: time}, NOW_MS) == age


def test_an_age_is_none_if_the_record_could_not_be_read() -> None:
    assert age_s(row(), {}, NOW_MS) is None
