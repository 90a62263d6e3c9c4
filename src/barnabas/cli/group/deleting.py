"""The actions delete and delete-offsets of `barnabas consumer-groups`."""

from typing import TYPE_CHECKING, Any, Final

from barnabas.base.ids import TopicPartition
from barnabas.cli.group import tables
from barnabas.cli.group.actions import chosen
from barnabas.cli.group.failures import CommandFailed, java_error, message_of, print_error
from barnabas.cli.group.partitions import every_partition, parse_topics
from barnabas.cli.option_parser import Options
from barnabas.cli.tool import print_json

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin
    from barnabas.client.errors import Refused

# Stands for the partitions of a topic that could not be described.
_NO_PARTITION: Final = -1
# Errors of the whole group, and errors of single partitions.
_OF_GROUP: Final = (
    "INVALID_GROUP_ID",
    "GROUP_ID_NOT_FOUND",
    "GROUP_AUTHORIZATION_FAILED",
    "NON_EMPTY_GROUP",
)
_OF_PARTITIONS: Final = (
    "GROUP_SUBSCRIBED_TO_TOPIC",
    "TOPIC_AUTHORIZATION_FAILED",
    "UNKNOWN_TOPIC_OR_PARTITION",
)


async def delete(admin: "Admin", options: Options) -> int:
    from barnabas.client.admin.call import PartlyRefused

    groups = await chosen(admin, options)
    failed: dict[str, Refused] = {}
    try:
        await admin.delete_groups(groups, timeout_ms=options.timeout)
    except PartlyRefused as partly:
        failed = partly.refused
    deleted = [group for group in groups if group not in failed]
    if options.json:
        reasons = [{"group": group, "error": error.code.name} for group, error in failed.items()]
        print_json({"deleted": deleted, "failed": reasons})
        return 1 if failed else 0
    if not failed:
        print(f"Deletion of requested consumer groups ({_quoted(deleted)}) was successful.")
        return 0
    print_error("Deletion of some consumer groups failed:")
    for group, error in failed.items():
        print(f"* Group '{group}' could not be deleted due to: {java_error(error)}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {_quoted(deleted)}")
    return 0


def _quoted(groups: list[str]) -> str:
    return ", ".join(f"'{group}'" for group in groups)


# Offsets


async def delete_offsets(admin: "Admin", options: Options) -> int:
    if len(options.group) != 1:
        raise CommandFailed("Found multiple arguments for option group, but you asked for only one")
    [group] = options.group
    named, topics = parse_topics(options.topic)
    unknown: dict[TopicPartition, Refused] = {}
    tps = {*named}
    for topic in dict.fromkeys(topics):
        outcome = await _partitions_or_error(admin, topic, options)
        if isinstance(outcome, list):
            tps.update(outcome)
        else:
            unknown[TopicPartition(topic, _NO_PARTITION)] = outcome
    failed = await _delete_offsets(admin, group, tps, options)
    status: dict[TopicPartition, Refused | None] = {**dict.fromkeys(tps), **failed, **unknown}
    if options.json:
        print_json(
            {"group": group, "partitions": [_status_document(tp, status[tp]) for tp in sorted(status)]}
        )
        return 1 if any(status.values()) else 0
    _print_verdict(group, next(iter(failed.values()), None))
    print(tables.deleted_offsets({tp: _status(error) for tp, error in status.items()}), end="")
    return 0


async def _partitions_or_error(
    admin: "Admin", topic: str, options: Options
) -> "list[TopicPartition] | Refused":
    from barnabas.client.errors import SomeRefused

    try:
        return await every_partition(admin, [topic], timeout_ms=options.timeout)
    except SomeRefused as error:
        [refused] = error.refused.values()
        return refused


async def _delete_offsets(
    admin: "Admin", group: str, tps: set[TopicPartition], options: Options
) -> "dict[TopicPartition, Refused]":
    """Delete the offsets; return the errors by partition."""
    from barnabas.client.admin.call import PartlyRefused
    from barnabas.client.errors import Refused

    try:
        await admin.delete_group_offsets(group, tps, timeout_ms=options.timeout)
    except PartlyRefused as error:
        return {tp: error.refused[str(tp)] for tp in sorted(tps) if str(tp) in error.refused}
    except Refused as error:
        return dict.fromkeys(sorted(tps), error)
    return {}


def _print_verdict(group: str, error: "Refused | None") -> None:
    if error is None:
        print(f"Request succeeded for deleting offsets from group {group}.")
    elif error.code.name in _OF_GROUP:
        print_error(message_of(error.code))
    elif error.code.name in _OF_PARTITIONS:
        print_error("Encountered some partition-level error, see the follow-up details.")
    else:
        print_error(f"Encountered some unknown error: {error.code.name}")


def _status(error: "Refused | None") -> str:
    return "Successful" if error is None else f"Error: {java_error(error)}"


def _status_document(tp: TopicPartition, error: "Refused | None") -> dict[str, Any]:
    return {
        "topic": tp.topic,
        "partition": None if tp.partition == _NO_PARTITION else tp.partition,
        "error": None if error is None else error.code.name,
    }
