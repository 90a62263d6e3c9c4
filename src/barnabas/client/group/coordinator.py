"""The coordinator of a group, looked up when needed and again after it has moved.

ask() is one attempt. Callers back off between attempts with a RetryDelay of their own, because only they know
how long retries make sense.
"""

import asyncio
import logging
from typing import Any, ClassVar, Final

from barnabas.client.cluster import Cluster
from barnabas.client.connection import Connection, key_of
from barnabas.client.deadline import Backoff
from barnabas.client.errors import BrokerUnavailable, ClientError, Refused, refused
from barnabas.client.nodes import MAIN_CHANNEL
from barnabas.client.shared import SharedWork
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest, LeaveGroupRequest
from barnabas.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest

logger = logging.getLogger(__name__)

# A join waits at the broker for the other members, and would block requests behind it.
JOIN_CHANNEL: Final = "group"
_SEVERAL_KEYS_FROM: Final = 4
# LeaveGroup names several members.
_SEVERAL_MEMBERS_FROM: Final = 3
_MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class RetryDelay:
    """Backoff that grows with consecutive failures."""

    def __init__(self, cluster: Cluster) -> None:
        settings = cluster.settings
        self._backoff = Backoff(
            first_ms=max(1, settings.retry_backoff_ms),
            max_ms=settings.retry_backoff_max_ms,
            rng=cluster.ports.rng,
        )
        self._failures = 0

    async def wait(self) -> None:
        self._failures += 1
        await asyncio.sleep(self._backoff.wait_ms(self._failures) / 1000)

    def reset(self) -> None:
        self._failures = 0


class Coordinator:
    """The coordinator of a group. Subclasses look up those of other kinds of keys."""

    # The type of keys in FindCoordinator, and its name in errors.
    key_type: ClassVar[int] = 0
    key_noun: ClassVar[str] = "group"

    def __init__(self, cluster: Cluster, key: str) -> None:
        self._cluster = cluster
        self._key = key
        self._node: int | None = None
        self._shared = SharedWork()

    async def close(self) -> None:
        await self._shared.close()

    async def ask(
        self,
        request: object,
        *,
        timeout_ms: float | None = None,
        channel: str = MAIN_CHANNEL,
        newest: int | None = None,
    ) -> Any:
        """Ask the coordinator, once. A network error causes a new lookup."""
        node = await self._find()
        limit_ms = self._cluster.settings.request_timeout_ms if timeout_ms is None else timeout_ms
        try:
            connection = await self._cluster.connection(node, channel=channel)
            version = connection.version_of(key_of(request))
            if newest is not None:
                version = min(version, newest)
            return await connection.ask(request, timeout_ms=limit_ms, version=version)
        except ClientError as error:
            self._forget(node, error)
            raise

    async def connection(self) -> Connection:
        """Return the main connection to the coordinator. A network error causes a new lookup."""
        node = await self._find()
        try:
            return await self._cluster.connection(node)
        except ClientError as error:
            self._forget(node, error)
            raise

    async def version_of(self, key: ApiKey) -> int:
        """Return the newest version of an API that both sides support."""
        node = await self._find()
        try:
            return (await self._cluster.connection(node)).version_of(key)
        except ClientError as error:
            self._forget(node, error)
            raise

    async def send_leave(self, request: LeaveGroupRequest | ConsumerGroupHeartbeatRequest) -> None:
        """Leave the group, best effort: otherwise the broker removes the member after its session timeout."""
        try:
            if isinstance(request, LeaveGroupRequest):
                version = await self.version_of(ApiKey.LEAVE_GROUP)
                if version < _SEVERAL_MEMBERS_FROM:
                    request = LeaveGroupRequest(
                        group_id=request.group_id, member_id=request.members[0].member_id, members=[]
                    )
            await self.ask(request)
        except ClientError as error:
            logger.info("leave request failed error=%s", error)

    def check(self, code: int) -> None:
        """Forget the coordinator if the code says that it has moved."""
        if code in _MOVED and self._node is not None:
            self._forget(self._node, ErrorCode.of(code).name)

    def _forget(self, node: int, why: object) -> None:
        if self._node == node:
            logger.info("coordinator lost group=%s node=%s reason=%s", self._key, node, why)
            self._node = None

    async def _find(self) -> int:
        if self._node is not None:
            return self._node
        return await self._shared.join("find", self._find_coordinator)

    async def _find_coordinator(self) -> int:
        connection = await self._cluster.any_connection()
        version = connection.version_of(ApiKey.FIND_COORDINATOR)
        if version >= _SEVERAL_KEYS_FROM:
            request = FindCoordinatorRequest(key_type=self.key_type, coordinator_keys=[self._key])
        else:
            request = FindCoordinatorRequest(key_type=self.key_type, key=self._key)
        timeout_ms = self._cluster.settings.request_timeout_ms
        answer = await connection.ask(request, timeout_ms=timeout_ms, version=version)
        # Before version 4 the response itself describes the coordinator.
        entry = next(iter(answer.coordinators), None) if version >= _SEVERAL_KEYS_FROM else answer
        about = f"{self.key_noun} {self._key}"
        if entry is None:
            raise BrokerUnavailable([connection.address], f"its response has no entry for {about}")
        if entry.error_code != ErrorCode.NONE:
            raise self._lookup_error(entry.error_code, about, entry.error_message)
        if entry.node_id not in self._cluster.metadata.nodes:
            await self._cluster.refresh([])
        self._found(int(entry.node_id))
        return int(entry.node_id)

    def _lookup_error(self, code: int, about: str, message: str | None) -> Refused:
        return refused(code, about=about, message=message)

    def _found(self, node: int) -> None:
        self._node = node
        logger.info("coordinator found group=%s node=%s", self._key, node)
