"""A broker's state at the controller: registered, fenced until it has caught up, active, shut down.

The broker sends a registration and heartbeats; the controller's decisions come back through the metadata.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.base.ids import Uuid
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)

logger = logging.getLogger(__name__)

# Delay before a retry of transient errors: no controller yet, or the last registration still counts as alive.
_RETRY_S: Final = 0.1
# How long a broker that was unregistered while running tries to register again before it pauses.
_AGAIN_S: Final = 60.0


class RegistrationRefused(BarnabasError):
    """The controller refused to register this broker."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(f"the controller refused the registration of this broker: {code.name}")
        self.code: Final = code


class Lifecycle:
    """One broker. `call` asks the controller."""

    def __init__(
        self,
        call: Callable[[object], Awaitable[object]],
        *,
        node_id: int,
        cluster_id: str,
        incarnation_id: Uuid,
        rack: str | None,
        log_dirs: Sequence[Uuid],
        features: Sequence[Feature],
        previous_epoch: int,
        heartbeat_ms: int,
        metadata_offset: Callable[[], int],
        is_registered: Callable[[], bool],
        on_registered: Callable[[int], None],
    ) -> None:
        self.epoch = -1
        self.is_fenced = True
        self._call = call
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._incarnation_id = incarnation_id
        self._rack = rack
        self._log_dirs = log_dirs
        self._features = features
        self._previous_epoch = previous_epoch
        self._heartbeat_ms = heartbeat_ms
        self._metadata_offset = metadata_offset
        # Whether the metadata has a registration of this broker.
        self._is_registered = is_registered
        # Called with the epoch of each registration.
        self._on_registered = on_registered
        self._listeners: Sequence[Listener] = ()
        self._offline_dirs: list[Uuid] = []

    async def register(self, listeners: Sequence[Listener], timeout_s: float) -> None:
        """Register with the controller, with retries. RegistrationRefused on a permanent error."""
        self._listeners = listeners
        request = BrokerRegistrationRequest(
            broker_id=self._node_id,
            cluster_id=self._cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=list(listeners),
            features=list(self._features),
            rack=self._rack,
            log_dirs=sorted(self._log_dirs),
            previous_broker_epoch=self._previous_epoch,
        )
        async with asyncio.timeout(timeout_s):
            while True:
                answer = await self._call(request)
                assert isinstance(answer, BrokerRegistrationResponse)
                code = ErrorCode(answer.error_code)
                if code == ErrorCode.NONE:
                    break
                if not code.retriable and code != ErrorCode.DUPLICATE_BROKER_REGISTRATION:
                    raise RegistrationRefused(code)
                await asyncio.sleep(_RETRY_S)
        self.epoch = answer.broker_epoch
        self._on_registered(self.epoch)
        logger.info("registered node=%d epoch=%d", self._node_id, self.epoch)

    def directory_failed(self, directory_id: Uuid) -> None:
        """Report a log directory as offline in the next heartbeat."""
        self._offline_dirs.append(directory_id)

    async def beat(self, *, want_shut_down: bool = False) -> BrokerHeartbeatResponse:
        """Send one heartbeat and update is_fenced."""
        answer = await self._call(
            BrokerHeartbeatRequest(
                broker_id=self._node_id,
                broker_epoch=self.epoch,
                current_metadata_offset=self._metadata_offset(),
                want_fence=False,
                want_shut_down=want_shut_down,
                offline_log_dirs=list(self._offline_dirs),
            )
        )
        assert isinstance(answer, BrokerHeartbeatResponse)
        if answer.error_code == ErrorCode.NONE:
            if self.is_fenced and not answer.is_fenced:
                logger.info("unfenced node=%d epoch=%d", self._node_id, self.epoch)
            self.is_fenced = answer.is_fenced
        else:
            logger.warning("heartbeat failed error=%s", ErrorCode(answer.error_code).name)
        return answer

    async def become_active(self, timeout_s: float) -> None:
        """Send heartbeats until the controller unfences this broker."""
        async with asyncio.timeout(timeout_s):
            while self.is_fenced:
                await self.beat()
                if self.is_fenced:
                    await asyncio.sleep(_RETRY_S)

    async def run(self) -> None:
        """Send heartbeats, until cancelled."""
        while True:
            await asyncio.sleep(self._heartbeat_ms / 1000)
            answer = await self.beat()
            if answer.error_code == ErrorCode.STALE_BROKER_EPOCH and not self._is_registered():
                await self._register_again()

    async def _register_again(self) -> None:
        """Register again after an UnregisterBroker request, which is meant for brokers that are gone.

        Kafka's brokers stay unregistered until they are restarted, and their partitions without a leader.
        """
        logger.warning("broker was unregistered while running node=%d", self._node_id)
        self.is_fenced = True
        # The logs are complete: nothing was lost since the previous registration.
        self._previous_epoch = self.epoch
        await self.register(self._listeners, _AGAIN_S)
        await self.become_active(_AGAIN_S)

    async def leave(self, timeout_s: float) -> None:
        """Controlled shutdown: let the controller move leaders away and fence this broker, with a timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    answer = await self.beat(want_shut_down=True)
                    if answer.error_code != ErrorCode.NONE or answer.should_shut_down:
                        return
                    await asyncio.sleep(_RETRY_S)
        except TimeoutError:
            logger.warning("controlled shutdown timed out")
