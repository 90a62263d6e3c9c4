"""The actions list, describe and reset of `barnabas consumer-groups`.

Each action is one function, which prints the result and returns the exit code. Deletion is in deleting.py.
"""

import time
from typing import TYPE_CHECKING, Any, Final

from barnabas.base.ids import TopicPartition
from barnabas.cli.group import describing, documents, reset_file, tables
from barnabas.cli.group.failures import CommandFailed, Misused, print_error
from barnabas.cli.option_parser import Options
from barnabas.cli.tool import note, print_json

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin
    from barnabas.client.admin.groups import GroupDescription, GroupState, GroupType

_REBALANCING: Final = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
_VALID_TYPES: Final = ("Consumer", "Classic")
_VALID_STATES: Final = (
    "CompletingRebalance",
    "PreparingRebalance",
    "Reconciling",
    "Empty",
    "Stable",
    "Dead",
    "Assigning",
)


async def chosen(admin: "Admin", options: Options) -> list[str]:
    if not options.all_groups:
        return list(dict.fromkeys(options.group))
    found = await describing.consumer_groups(admin, timeout_ms=options.timeout)
    return [each.group for each in found]


# List


async def list_groups(admin: "Admin", options: Options) -> int:
    states, types = _states(options.state), _types(options.type)
    found = await describing.consumer_groups(admin, states=states, types=types, timeout_ms=options.timeout)
    with_type, with_state = options.given("type"), options.given("state")
    if options.json:
        print_json({"groups": [documents.listed(each) for each in found]})
    elif with_type or with_state:
        print(tables.listing(found, with_type=with_type, with_state=with_state))
    else:
        for each in found:
            print(each.group)
    return 0


def _states(text: str | None) -> "list[GroupState]":
    from barnabas.client.admin.groups import state_of

    if not text:
        return []
    found = [state_of(each.strip()) for each in text.split(",")]
    if not set(_VALID_STATES).issuperset(found):
        raise Misused(f"Invalid state list '{text}'. Valid states are: {', '.join(_VALID_STATES)}")
    return found


def _types(text: str | None) -> "list[GroupType]":
    from barnabas.client.admin.groups import type_of

    if not text:
        return []
    found = [type_of(each.strip()) for each in text.split(",")]
    if not set(_VALID_TYPES).issuperset(found):
        raise Misused(f"Invalid types list '{text}'. Valid types are: {', '.join(_VALID_TYPES)}")
    return found


# Describe


async def describe(admin: "Admin", options: Options) -> int:
    groups = await describing.described(admin, await chosen(admin, options), timeout_ms=options.timeout)
    if options.members:
        return _show_members(groups, options)
    if options.given("state"):
        return _show_states(groups, options)
    return await _show_offsets(admin, groups, options)


async def _show_offsets(admin: "Admin", groups: "list[GroupDescription]", options: Options) -> int:
    found = await describing.with_offsets(admin, groups, timeout_ms=options.timeout)
    if options.lag_seconds or options.json:
        now_ms = time.time_ns() // 10**6
        found = await describing.with_ages(admin, found, now_ms=now_ms, timeout_ms=options.timeout)
    if options.json:
        print_json({"groups": [documents.with_offsets(each) for each in found]})
        return 0
    for each in found:
        if _is_shown(each.group) and each.partitions:
            table = tables.offsets(each, verbose=options.verbose, lag_seconds=options.lag_seconds)
            print(table, end="")
    return 0


def _show_members(groups: "list[GroupDescription]", options: Options) -> int:
    if options.json:
        print_json({"groups": [documents.with_members(each) for each in groups]})
        return 0
    for each in groups:
        # Kafka prints the table's header even if it printed an error about the group.
        _is_shown(each)
        print(tables.members(each, verbose=options.verbose), end="")
    return 0


def _show_states(groups: "list[GroupDescription]", options: Options) -> int:
    if options.json:
        print_json({"groups": [documents.with_state(each) for each in groups]})
        return 0
    for each in groups:
        if _is_shown(each):
            print(tables.state(each, verbose=options.verbose), end="")
    return 0


def _is_shown(group: "GroupDescription") -> bool:
    """Print an error or a note about the group's state; return whether its details are shown."""
    if group.state == "Dead":
        print_error(f"Consumer group '{group.group}' does not exist.")
        return False
    if group.state == "Empty":
        note(f"\nConsumer group '{group.group}' has no active members.")
    elif group.state in _REBALANCING:
        note(f"\nWarning: Consumer group '{group.group}' is rebalancing.")
    elif group.state != "Stable":
        raise CommandFailed(f"Expected a valid consumer group state, but found '{group.state}'.")
    return True


# Reset offsets


async def reset_offsets(admin: "Admin", options: Options) -> int:
    from barnabas.cli.group.resetting import Resetting

    resetting = Resetting(admin, options)
    plan = await resetting.plan(await chosen(admin, options))
    if options.execute:
        await resetting.execute(plan)
    for warning in resetting.warnings:
        note(f"Warn: {warning}") if options.json else print(f"\nWarn: {warning}")
    if options.json:
        print_json({"executed": options.execute, "groups": _reset_documents(plan, resetting.errors)})
        return 1 if resetting.errors else 0
    for error in resetting.errors.values():
        print_error(error)
    if options.export:
        print(reset_file.written(plan, with_group=len(options.group) != 1))
    else:
        print(tables.reset(plan), end="")
    return 0


def _reset_documents(
    plan: dict[str, dict[TopicPartition, int]], errors: dict[str, str]
) -> list[dict[str, Any]]:
    return [
        {
            "group": group,
            "error": errors.get(group),
            "partitions": [
                {"topic": tp.topic, "partition": tp.partition, "newOffset": offset}
                for tp, offset in offsets.items()
            ],
        }
        for group, offsets in plan.items()
    ]
