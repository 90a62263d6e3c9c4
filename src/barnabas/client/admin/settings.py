"""Admin client settings with Kafka's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from barnabas.base.setting_rules import between
from barnabas.base.settings import setting
from barnabas.client.settings import INT, LONG, ClientSettings

_INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings(ClientSettings):
    REFUSED: ClassVar[Mapping[str, str]] = {
        "bootstrap.controllers": "connecting to controllers is not supported: use bootstrap.servers",
        "metadata.recovery.strategy": "not configurable: this client always falls back to bootstrap.servers",
    }

    retries: int = setting(
        "retries",
        INT,
        _INT_MAX,
        "most retries of a call, within its timeout",
        rule=between(0, _INT_MAX),
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms",
        LONG,
        300_000,
        "close a connection that is idle for this long",
        rule=between(1, 2**63 - 1),
    )
