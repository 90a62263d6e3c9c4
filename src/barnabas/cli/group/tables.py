"""The tables of kafka-consumer-groups.sh, with the same columns and widths. Pure.

Kafka's tool prints the line separator before each line, so an empty line precedes a table.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.base.ids import TopicPartition
from barnabas.cli.group.rows import MISSING, GroupRows, PartitionRow

if TYPE_CHECKING:
    from barnabas.client.admin.groups import GroupDescription, GroupListing, MemberDescription

_NARROW: Final = 15
_LISTED_EXTRA: Final = 10


def _table(rows: Sequence[Sequence[object]], widths: Sequence[int]) -> str:
    """Format columns with minimum widths; wider cells are not cut. Width 0: no padding."""
    return "".join(
        "\n" + " ".join(f"{cell!s:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows
    )


def _widest(least: int, cells: Iterable[str]) -> int:
    return max([least, *map(len, cells)])


def _or_missing(cell: object) -> object:
    return MISSING if cell is None else cell


# List


def listing(groups: Sequence["GroupListing"], *, with_type: bool, with_state: bool) -> str:
    heads = ["GROUP", *(["TYPE"] if with_type else []), *(["STATE"] if with_state else [])]
    width = _widest(_NARROW, (each.group for each in groups)) + _LISTED_EXTRA
    rows: list[list[object]] = [list(heads)]
    for each in groups:
        rows.append([each.group, *([each.type] if with_type else []), *([each.state] if with_state else [])])
    return _table(rows, [width, *[20] * (len(heads) - 1)])[1:]


# Offsets


def offsets(found: GroupRows, *, verbose: bool, lag_seconds: bool) -> str:
    group, partitions = found.group.group, found.partitions
    heads = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    widths = [
        _widest(_NARROW, [group]),
        _widest(_NARROW, (each.tp.topic for each in partitions)),
        10,
        _NARROW,
        _NARROW,
        _NARROW,
    ]
    if verbose:
        heads.insert(3, "LEADER-EPOCH")
        widths.insert(3, _NARROW)
    if lag_seconds:
        heads.append("LAG-SECONDS")
        widths.append(_NARROW)
    heads += ["CONSUMER-ID", "HOST", "CLIENT-ID"]
    widths.append(_widest(_NARROW, (each.consumer_id for each in partitions)))
    widths.append(_widest(_NARROW, (each.host for each in partitions)))
    widths.append(0)
    rows: list[Sequence[object]] = [heads]
    rows += [_offset_row(group, each, verbose, lag_seconds) for each in partitions]
    return _table(rows, widths) + "\n"


def _offset_row(group: str, each: PartitionRow, verbose: bool, lag_seconds: bool) -> list[object]:
    row: list[object] = [group, each.tp.topic, each.tp.partition]
    if verbose:
        row.append(_or_missing(each.leader_epoch))
    row += [_or_missing(each.offset), _or_missing(each.log_end), _or_missing(each.lag)]
    if lag_seconds:
        row.append(MISSING if each.lag_seconds is None else f"{each.lag_seconds:.3f}")
    return [*row, each.consumer_id, each.host, each.client_id]


# Members


def members(group: "GroupDescription", *, verbose: bool) -> str:
    shown = group.members
    heads = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    widths = [
        _widest(_NARROW, [group.group] if shown else []),
        _widest(_NARROW, (each.id for each in shown)),
        _widest(_NARROW, (each.host for each in shown)),
        _widest(_NARROW, (each.client_id for each in shown)),
        _NARROW,
    ]
    with_instances = any(each.instance_id for each in shown)
    if with_instances:
        heads.insert(2, "GROUP-INSTANCE-ID")
        widths.insert(2, _widest(17, (each.instance_id or "" for each in shown)))
    migrating = {True, False} <= {each.upgraded for each in shown}
    if verbose:
        heads += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        widths += [_NARROW, _widest(20, (_assignment(each.assignment) for each in shown))]
        widths += [_NARROW, _widest(20, (_assignment(each.target or ()) for each in shown))]
        if migrating:
            heads.append("UPGRADED")
            widths.append(0)
    else:
        # Kafka prints a blank after the last column.
        heads.append("")
        widths.append(0)
    rows: list[Sequence[object]] = [heads]
    rows += [_member_row(group, each, with_instances, verbose, migrating) for each in shown]
    return _table(rows, widths) + "\n"


def _member_row(
    group: "GroupDescription", each: "MemberDescription", with_instances: bool, verbose: bool, migrating: bool
) -> list[object]:
    row: list[object] = [group.group, each.id]
    if with_instances:
        row.append(each.instance_id or "")
    row += [each.host, each.client_id, len(each.assignment)]
    if not verbose:
        return [*row, ""]
    row += [_or_missing(each.epoch), _assignment(each.assignment)]
    row += [_or_missing(group.assignment_epoch), _assignment(each.target or ())]
    if migrating:
        row.append(MISSING if each.upgraded is None else str(each.upgraded).lower())
    return row


def _assignment(tps: Iterable[TopicPartition]) -> str:
    """`orders:0,1;plain:0`."""
    topics: dict[str, list[int]] = {}
    for tp in tps:
        topics.setdefault(tp.topic, []).append(tp.partition)
    shown = [f"{topic}:{','.join(map(str, sorted(numbers)))}" for topic, numbers in topics.items()]
    return ";".join(sorted(shown)) or MISSING


# State


def state(group: "GroupDescription", *, verbose: bool) -> str:
    node = group.coordinator
    coordinator = f"{node.host}:{node.port}  ({node.id})"
    heads = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    row: list[object] = [group.group, coordinator, group.assignor or MISSING, group.state]
    widths = [_widest(_NARROW, [group.group]), _widest(25, [coordinator]), 20, 20]
    if verbose:
        heads += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        row += [_or_missing(group.epoch), _or_missing(group.assignment_epoch)]
        widths += [_NARROW, 25]
    return _table([[*heads, "#MEMBERS"], [*row, len(group.members)]], [*widths, 0]) + "\n"


# Reset and deleted offsets


def reset(plan: Mapping[str, Mapping[TopicPartition, int]]) -> str:
    rows: list[Sequence[object]] = [["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]] if plan else []
    rows += [
        [group, tp.topic, tp.partition, offset]
        for group, offsets in plan.items()
        for tp, offset in offsets.items()
    ]
    topics = (tp.topic for offsets in plan.values() for tp in offsets)
    return _table(rows, [_widest(_NARROW, plan), _widest(_NARROW, topics), 10, 0]) + "\n"


def deleted_offsets(status: Mapping[TopicPartition, str]) -> str:
    """Partition -1 stands for a topic that could not be described."""
    # Kafka sorts the partitions as text: 10 comes before 2.
    ordered = sorted(status, key=lambda tp: f"{tp.topic}{tp.partition}")
    rows: list[Sequence[object]] = [["TOPIC", "PARTITION", "STATUS"]]
    rows += [[tp.topic, tp.partition if tp.partition >= 0 else MISSING, status[tp]] for tp in ordered]
    return _table(rows, [_widest(_NARROW, (tp.topic for tp in status)), 10, _NARROW]) + "\n"
