"""JSON documents about groups. Pure."""

from typing import TYPE_CHECKING, Any

from barnabas.base.ids import TopicPartition
from barnabas.cli.group.rows import MISSING, GroupRows, PartitionRow

if TYPE_CHECKING:
    from barnabas.client.admin.groups import GroupDescription, GroupListing, MemberDescription


def listed(group: "GroupListing") -> dict[str, Any]:
    return {
        "group": group.group,
        "type": group.type,
        "state": group.state,
        "protocolType": group.protocol_type,
    }


def _head(group: "GroupDescription") -> dict[str, Any]:
    return {"group": group.group, "type": group.type, "state": group.state}


def with_offsets(found: GroupRows) -> dict[str, Any]:
    return {**_head(found.group), "partitions": [_partition(each) for each in found.partitions]}


def _partition(row: PartitionRow) -> dict[str, Any]:
    has_member = row.consumer_id != MISSING
    return {
        "topic": row.tp.topic,
        "partition": row.tp.partition,
        "offset": row.offset,
        "leaderEpoch": row.leader_epoch,
        "metadata": row.metadata,
        "logEndOffset": row.log_end,
        "lag": row.lag,
        "lagSeconds": row.lag_seconds,
        "consumerId": row.consumer_id if has_member else None,
        "host": row.host if has_member else None,
        "clientId": row.client_id if has_member else None,
    }


def with_members(group: "GroupDescription") -> dict[str, Any]:
    return {**_head(group), "members": [_member(each) for each in group.members]}


def _member(member: "MemberDescription") -> dict[str, Any]:
    return {
        "consumerId": member.id,
        "groupInstanceId": member.instance_id,
        "host": member.host,
        "clientId": member.client_id,
        "rack": member.rack,
        "epoch": member.epoch,
        "assignment": partitions(member.assignment),
        "targetAssignment": None if member.target is None else partitions(member.target),
        "upgraded": member.upgraded,
    }


def partitions(tps: tuple[TopicPartition, ...]) -> list[dict[str, Any]]:
    return [{"topic": tp.topic, "partition": tp.partition} for tp in tps]


def with_state(group: "GroupDescription") -> dict[str, Any]:
    node = group.coordinator
    return {
        **_head(group),
        "coordinator": {"id": node.id, "host": node.host, "port": node.port},
        "assignmentStrategy": group.assignor or None,
        "groupEpoch": group.epoch,
        "targetAssignmentEpoch": group.assignment_epoch,
        "memberCount": len(group.members),
    }
