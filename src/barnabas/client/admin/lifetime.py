"""Start and close of the admin client, and creation of a Call. The public calls are in Admin."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from barnabas.client.admin.call import Call
from barnabas.client.admin.settings import AdminSettings
from barnabas.client.cluster import Cluster
from barnabas.client.ports import ClientPorts
from barnabas.client.settings import parse_settings_of


class AdminLifetime:
    """Started by start() or `async with`."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        /,
        *,
        ports: ClientPorts | None = None,
        **named: object,
    ) -> None:
        self.settings = parse_settings_of(AdminSettings, settings, named)
        self.cluster = Cluster(self.settings, ports)

    async def start(self) -> None:
        await self.cluster.start()

    async def close(self) -> None:
        """Close all connections. Pending calls raise Closed."""
        await self._disconnect()

    async def _disconnect(self) -> None:
        await self.cluster.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _call(self, timeout_ms: float | None) -> Call:
        return Call(self.cluster, timeout_ms=timeout_ms, retries=self.settings.retries)
