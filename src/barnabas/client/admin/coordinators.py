"""Calls about groups: each group is asked for at the broker that coordinates it (FindCoordinator).

Who coordinates is asked anew for every try, in one request for all groups where the broker has that (version
4), because a coordinator that has moved or is loading is why there is another try. A broker that cannot be
reached costs its own groups a try, and no others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from barnabas.client.admin.call import Call, Outcome, judged
from barnabas.client.errors import ClientError
from barnabas.client.metadata import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest, FindCoordinatorResponse

V = TypeVar("V")

# How many groups are named in one request, so that its answer has a bound.
GROUPS_IN_REQUEST_MAX: Final = 500
_BATCHED_FROM: Final = 4

# Asks one coordinator for some of its groups.
AskOne: TypeAlias = Callable[[Node, list[str]], Awaitable[Mapping[str, Outcome[V]]]]


async def ask_coordinators(
    call: Call, what: str, groups: Iterable[str], ask: AskOne[V]
) -> dict[str, Outcome[V]]:
    """What the coordinators say of groups; `ask` asks one of them."""

    async def attempt(pending: list[str]) -> dict[str, Outcome[V]]:
        nodes, shares, found = await _shares(call, pending)
        asked: list[asyncio.Task[Mapping[str, Outcome[V]]]] = []
        async with asyncio.TaskGroup() as tasks:
            for node_id, share in shares.items():
                asked.append(tasks.create_task(_ask_kindly(nodes[node_id], share, ask)))
        for task in asked:
            found.update(task.result())
        return found

    return await call.settle(what, groups, attempt)


async def coordinator_of(call: Call, group: str) -> Node:
    """The broker that coordinates one group, or the error is raised. One try."""
    outcome = (await _find(call, [group]))[group]
    if isinstance(outcome, ClientError):
        raise outcome
    return outcome


async def _ask_kindly(node: Node, share: list[str], ask: AskOne[V]) -> Mapping[str, Outcome[V]]:
    found: dict[str, Outcome[V]] = {}
    for part in _parts(share):
        try:
            found.update(await ask(node, part))
        except ClientError as error:
            found.update(dict.fromkeys(part, error))
    return found


async def _shares(
    call: Call, groups: list[str]
) -> tuple[dict[int, Node], dict[int, list[str]], dict[str, Outcome[Any]]]:
    """The coordinators, their groups, and why some groups have none."""
    nodes: dict[int, Node] = {}
    shares: dict[int, list[str]] = {}
    failed: dict[str, Outcome[Any]] = {}
    for part in _parts(groups):
        for group, outcome in (await _find(call, part)).items():
            if isinstance(outcome, ClientError):
                failed[group] = outcome
            else:
                nodes[outcome.id] = outcome
                shares.setdefault(outcome.id, []).append(group)
    return nodes, shares, failed


async def _find(call: Call, groups: list[str]) -> dict[str, Outcome[Node]]:
    connection = await call.connection()
    if connection.version_of(ApiKey.FIND_COORDINATOR) >= _BATCHED_FROM:
        answer = await call.ask(
            ApiKey.FIND_COORDINATOR,
            lambda _: FindCoordinatorRequest(coordinator_keys=groups),
        )
        return {told.key: _node(told.key, told) for told in answer.coordinators}
    return {group: await _find_single(call, group) for group in groups}


async def _find_single(call: Call, group: str) -> Outcome[Node]:
    # The key of a group is one of type 0, which is also what there was before there were types.
    answer: FindCoordinatorResponse = await call.ask(
        ApiKey.FIND_COORDINATOR, lambda _: FindCoordinatorRequest(key=group), newest=_BATCHED_FROM - 1
    )
    return _node(group, answer)


def _node(group: str, told: Any) -> Outcome[Node]:
    node = Node(told.node_id, told.host, told.port)
    return judged(told.error_code, node, about=f"group {group}", message=told.error_message or None)


def _parts(groups: list[str]) -> list[list[str]]:
    return [
        groups[start : start + GROUPS_IN_REQUEST_MAX]
        for start in range(0, len(groups), GROUPS_IN_REQUEST_MAX)
    ]
