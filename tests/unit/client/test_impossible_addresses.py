"""Invalid addresses, from users or metadata: connecting raises BrokerUnavailable."""

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from barnabas.client.connection import Connection, open_connection
from barnabas.client.errors import BrokerUnavailable
from barnabas.client.settings import ClientSettings, parse_settings_of


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("127.0.0.1", 70_000),
        ("127.0.0.1", -1),
        ("::1", 1 << 40),
        ("localhost", 70_000),
        ("a..b", 9092),
        ("x\0y", 9092),
        ("x" * 64, 9092),
        ("\ud800", 9092),
    ],
)
def test_an_impossible_address_is_unavailable(
    new_loop: Callable[[], asyncio.AbstractEventLoop], host: str, port: int
) -> None:
    settings = parse_settings_of(ClientSettings, {"bootstrap.servers": "localhost:9092"}, {})

    async def connect() -> Connection:
        return await open_connection(host, port, settings)

    with asyncio.Runner(loop_factory=new_loop) as runner, pytest.raises(BrokerUnavailable):
        runner.run(connect())
