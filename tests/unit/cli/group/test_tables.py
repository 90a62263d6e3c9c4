"""The tables of groups: Kafka's columns and widths, and our LAG-SECONDS column."""

from dataclasses import replace
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.cli.group import tables
from barnabas.cli.group.rows import GroupRows, PartitionRow
from barnabas.client.admin.groups import (
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    MemberDescription,
)
from barnabas.client.metadata import Node

ORDERS_0, ORDERS_1, PLAIN_0 = (
    TopicPartition("orders", 0),
    TopicPartition("orders", 1),
    TopicPartition("plain", 0),
)


def member(name: str, **given: Any) -> MemberDescription:
    fields: dict[str, Any] = {
        "id": name,
        "instance_id": None,
        "rack": None,
        "client_id": "c",
        "host": "/127.0.0.1",
        "assignment": (ORDERS_0,),
        "target": None,
        "epoch": None,
        "upgraded": None,
    }
    return MemberDescription(**{**fields, **given})


def group(*members: MemberDescription, **given: Any) -> GroupDescription:
    fields: dict[str, Any] = {
        "group": "billing",
        "type": GroupType.CLASSIC,
        "state": GroupState.STABLE,
        "protocol_type": "consumer",
        "assignor": "range",
        "coordinator": Node(2, "localhost", 9092),
        "members": members,
        "epoch": None,
        "assignment_epoch": None,
        "operations": None,
    }
    return GroupDescription(**{**fields, **given})


def row(tp: TopicPartition, **given: Any) -> PartitionRow:
    fields: dict[str, Any] = {
        "offset": 3,
        "leader_epoch": 1,
        "metadata": "",
        "log_end": 10,
        "consumer_id": "-",
        "host": "-",
        "client_id": "-",
    }
    return PartitionRow(tp=tp, **{**fields, **given})


def test_a_list_is_ten_wider_than_the_longest_group() -> None:
    listed = GroupListing(
        group="g" * 20, type=GroupType.CONSUMER, state=GroupState.EMPTY, protocol_type="consumer"
    )

    shown = tables.listing([listed], with_type=True, with_state=True)

    assert shown.splitlines() == [
        f"{'GROUP':<30} {'TYPE':<20} {'STATE':<20}",
        f"{'g' * 20:<30} {'Consumer':<20} {'Empty':<20}",
    ]


def test_the_offset_table_starts_with_an_empty_line_and_has_kafkas_widths() -> None:
    rows = GroupRows(group=group(), partitions=(row(ORDERS_0),))

    shown = tables.offsets(rows, verbose=False, lag_seconds=False)

    assert shown == (
        "\nGROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             "
        "CONSUMER-ID     HOST            CLIENT-ID"
        "\nbilling         orders          0          3               10              7               "
        "-               -               -\n"
    )


def test_a_missing_value_is_a_dash() -> None:
    rows = GroupRows(
        group=group(), partitions=(row(ORDERS_0, offset=None, leader_epoch=None), row(ORDERS_1, log_end=None))
    )

    _, _, first, second = tables.offsets(rows, verbose=True, lag_seconds=True).splitlines()

    assert first.split() == ["billing", "orders", "0", "-", "-", "10", "-", "-", "-", "-", "-"]
    assert second.split() == ["billing", "orders", "1", "1", "3", "-", "-", "-", "-", "-", "-"]


def test_lag_seconds_follow_the_lag_column() -> None:
    rows = GroupRows(group=group(), partitions=(row(ORDERS_0, lag_seconds=12.5),))

    _, heads, only = tables.offsets(rows, verbose=False, lag_seconds=True).splitlines()

    assert heads.split()[5:7] == ["LAG", "LAG-SECONDS"]
    assert only.split()[5:7] == ["7", "12.500"]


def test_long_names_make_a_column_wider() -> None:
    owned = row(TopicPartition("t" * 30, 0), consumer_id="m" * 40, host="/10.0.0.1", client_id="c")
    rows = GroupRows(group=group(), partitions=(owned,))

    _, heads, only = tables.offsets(rows, verbose=False, lag_seconds=False).splitlines()

    assert only.index("m" * 40) == heads.index("CONSUMER-ID")
    assert only.index("/10.0.0.1") == heads.index("HOST")


def test_short_member_rows_end_with_a_blank_as_in_kafka() -> None:
    assert tables.members(group(member("m-1")), verbose=False) == (
        "\nGROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     "
        "\nbilling         m-1             /127.0.0.1      c               1               \n"
    )


def test_the_header_of_an_empty_group_ignores_the_width_of_its_name() -> None:
    shown = tables.members(group(group="g" * 40), verbose=False)

    assert shown == "\nGROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     \n"


def test_instance_ids_are_a_column_if_a_member_has_one() -> None:
    shown = tables.members(group(member("m-1"), member("m-2", instance_id="i-2")), verbose=False)

    _, heads, first, second = shown.splitlines()
    assert heads.split()[2] == "GROUP-INSTANCE-ID"
    assert second.split()[2] == "i-2"
    assert first[heads.index("GROUP-INSTANCE-ID") :].startswith(" " * 17)


def test_verbose_members_show_current_and_target_assignment() -> None:
    has, target = (ORDERS_1, ORDERS_0, PLAIN_0), (PLAIN_0,)
    one = member("m-1", assignment=has, target=target, epoch=4)

    _, heads, only = tables.members(group(one, assignment_epoch=5), verbose=True).splitlines()

    assert heads.split()[5:] == ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    assert only.split()[4:] == ["3", "4", "orders:0,1;plain:0", "5", "plain:0"]


@pytest.mark.parametrize(
    ("upgraded", "is_shown"), [((True, False), True), ((True, True), False), ((None, True), False)]
)
def test_the_upgraded_column_is_shown_while_members_are_mixed(
    upgraded: tuple[bool | None, bool | None], is_shown: bool
) -> None:
    members = [member(f"m-{at}", upgraded=each) for at, each in enumerate(upgraded)]

    _, heads, first, second = tables.members(group(*members), verbose=True).splitlines()

    assert heads.endswith("UPGRADED") is is_shown
    assert (first.endswith("true") and second.endswith("false")) is is_shown


def test_a_state_has_the_coordinator_with_two_blanks_before_its_id() -> None:
    assert tables.state(group(member("m-1")), verbose=False) == (
        "\nGROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                #MEMBERS"
        "\nbilling         localhost:9092  (2)       range                Stable               1\n"
    )


def test_a_verbose_state_has_the_epochs() -> None:
    known = group(epoch=3, assignment_epoch=2, assignor="")

    _, heads, only = tables.state(known, verbose=True).splitlines()
    _, _, classic = tables.state(group(), verbose=True).splitlines()

    assert heads.split()[-3:] == ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS"]
    assert only.split()[3:] == ["-", "Stable", "3", "2", "0"]
    assert classic.split()[-3:] == ["-", "-", "0"]


def test_the_reset_table_has_a_header_even_without_offsets() -> None:
    head = "\nGROUP           TOPIC           PARTITION  NEW-OFFSET"

    assert tables.reset({"g": {}}) == f"{head}\n"
    assert tables.reset({"g": {ORDERS_0: 5}}) == f"{head}\ng               orders          0          5\n"
    assert tables.reset({}) == "\n"


def test_deleted_offsets_are_sorted_as_text_and_an_unknown_topic_has_a_dash() -> None:
    status = {
        TopicPartition("orders", 2): "Successful",
        TopicPartition("orders", 10): "Successful",
        TopicPartition("nowhere", -1): "Error: why",
    }

    _, _, *rows = tables.deleted_offsets(status).splitlines()

    assert [line.split()[:2] for line in rows] == [["nowhere", "-"], ["orders", "10"], ["orders", "2"]]


def test_a_lag_needs_a_committed_offset_and_a_log_end() -> None:
    known = row(ORDERS_0)

    assert known.lag == 7
    assert replace(known, offset=None).lag is None
    assert replace(known, log_end=None).lag is None
