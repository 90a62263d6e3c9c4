"""Sends requests about groups and transactional ids to their coordinators (FindCoordinator).

Every attempt looks the coordinators up again, because a moved or loading coordinator is the usual reason for
a retry; from version 4 on, one request covers all keys. An unreachable broker affects only its own keys.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from barnabas.client.admin.call import Call, NegotiatedApi, Outcome, outcome_of
from barnabas.client.errors import ClientError
from barnabas.client.metadata import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest, FindCoordinatorResponse

V = TypeVar("V")

# Keys per request, which bounds the size of the response.
KEYS_IN_REQUEST_MAX: Final = 500
_TYPES_FROM, _BATCHED_FROM = 1, 4


class KeyType(NamedTuple):
    """A kind of key that has a coordinator."""

    number: int
    noun: str

    def about(self, key: str) -> str:
        """Return the name of a key for errors."""
        return f"{self.noun} {key}"


GROUP: Final = KeyType(0, "group")
TRANSACTION: Final = KeyType(1, "transactional id")

# Asks one coordinator for some of its keys.
AskOne: TypeAlias = Callable[[Node, list[str]], Awaitable[Mapping[str, Outcome[V]]]]


async def ask_coordinators(
    call: Call, what: str, keys: Iterable[str], ask: AskOne[V], kind: KeyType = GROUP
) -> dict[str, Outcome[V]]:
    """Ask the coordinators of groups or transactional ids; `ask` sends the request to one of them."""

    async def attempt(pending: list[str]) -> dict[str, Outcome[V]]:
        nodes, shares, found = await _shares(call, pending, kind)
        asked: list[asyncio.Task[Mapping[str, Outcome[V]]]] = []
        async with asyncio.TaskGroup() as tasks:
            for node_id, share in shares.items():
                asked.append(tasks.create_task(_ask_or_errors(nodes[node_id], share, ask)))
        for task in asked:
            found.update(task.result())
        return found

    return await call.retry_items(what, keys, attempt)


async def coordinator_of(call: Call, group: str) -> Node:
    """Return the coordinator of a group. One attempt."""
    outcome = (await _find(call, [group], GROUP))[group]
    if isinstance(outcome, ClientError):
        raise outcome
    return outcome


async def _ask_or_errors(node: Node, share: list[str], ask: AskOne[V]) -> Mapping[str, Outcome[V]]:
    found: dict[str, Outcome[V]] = {}
    for part in _parts(share):
        try:
            found.update(await ask(node, part))
        except ClientError as error:
            found.update(dict.fromkeys(part, error))
    return found


async def _shares(
    call: Call, keys: list[str], kind: KeyType
) -> tuple[dict[int, Node], dict[int, list[str]], dict[str, Outcome[Any]]]:
    """Return the coordinators, their keys, and the errors of keys without a coordinator."""
    nodes: dict[int, Node] = {}
    shares: dict[int, list[str]] = {}
    failed: dict[str, Outcome[Any]] = {}
    for part in _parts(keys):
        for key, outcome in (await _find(call, part, kind)).items():
            if isinstance(outcome, ClientError):
                failed[key] = outcome
            else:
                nodes[outcome.id] = outcome
                shares.setdefault(outcome.id, []).append(key)
    return nodes, shares, failed


async def _find(call: Call, keys: list[str], kind: KeyType) -> dict[str, Outcome[Node]]:
    connection = await call.connection()
    if connection.version_of(ApiKey.FIND_COORDINATOR) >= _BATCHED_FROM:
        request = FindCoordinatorRequest(key_type=kind.number, coordinator_keys=keys)
        answer = await call.ask(ApiKey.FIND_COORDINATOR, lambda _: request)
        return {entry.key: _node(kind, entry.key, entry) for entry in answer.coordinators}
    return {key: await _find_single(call, key, kind) for key in keys}


async def _find_single(call: Call, key: str, kind: KeyType) -> Outcome[Node]:
    def make(api: NegotiatedApi) -> object:
        if kind is GROUP:
            # Groups are key type 0, which is also the meaning of requests without a type.
            return FindCoordinatorRequest(key=key)
        api.require(_TYPES_FROM, f"the coordinator of a {kind.noun}")
        return FindCoordinatorRequest(key=key, key_type=kind.number)

    answer: FindCoordinatorResponse = await call.ask(ApiKey.FIND_COORDINATOR, make, newest=_BATCHED_FROM - 1)
    return _node(kind, key, answer)


def _node(kind: KeyType, key: str, entry: Any) -> Outcome[Node]:
    node = Node(entry.node_id, entry.host, entry.port)
    return outcome_of(entry.error_code, node, about=kind.about(key), message=entry.error_message or None)


def _parts(keys: list[str]) -> list[list[str]]:
    return [keys[start : start + KEYS_IN_REQUEST_MAX] for start in range(0, len(keys), KEYS_IN_REQUEST_MAX)]
