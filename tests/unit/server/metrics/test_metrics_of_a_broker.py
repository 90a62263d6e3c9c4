"""A real broker with its metrics server, in simulation."""

import asyncio

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.server.broker import Broker
from barnabas.server.metrics.http_server import metrics_server
from barnabas.sim.world import World, run_sim
from support.brokers import DATA, broker_settings, connected, make_broker
from support.observed import PROCESS
from support.prometheus_text import read_exposition

METRICS_PORT = 9100


async def get(path: str) -> tuple[int, bytes]:
    """Status and body. Uses HTTP/1.0, which has no chunks."""
    reader, writer = await asyncio.open_connection("127.0.0.1", METRICS_PORT)
    writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split(b" ")[1]), body


async def create(broker: Broker) -> None:
    async with connected(broker) as client:
        topic = CreatableTopic(name="orders", num_partitions=3, replication_factor=1)
        await client.call(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7, key=ApiKey.CREATE_TOPICS)


def test_health_and_readiness_from_start_to_failure() -> None:
    async def story(world: World) -> None:
        broker = make_broker(world, broker_settings())
        server = metrics_server(broker, lambda: PROCESS)
        await server.start("127.0.0.1", METRICS_PORT)

        assert await get("/health") == (200, b"ok\n")
        assert await get("/ready") == (503, b"the broker is starting\n")
        assert (await get("/metrics"))[0] == 200

        await broker.start()
        await create(broker)

        assert await get("/ready") == (200, b"ok\n")
        status, body = await get("/metrics")
        assert status == 200
        families = read_exposition(body)
        values = {name: list(one.samples.values()) for name, one in families.items()}
        assert values["barnabas_partitions"] == [3]
        assert values["barnabas_connections_accepted_total"] == [1, 0]
        assert values["barnabas_metadata_offset"][0] > 3
        assert values["barnabas_metadata_lag_records"] == [0]
        requests = families["barnabas_request_duration_seconds"].samples
        assert requests["barnabas_request_duration_seconds_count", (("api", "CREATE_TOPICS"),)] == 1
        free = families["barnabas_log_directory_free_bytes"].samples
        assert list(free) == [("barnabas_log_directory_free_bytes", (("path", DATA),))]

        broker.logs.fail_directory(broker.logs.directories[0], OSError("gone"))
        assert await get("/health") == (503, b"the broker has failed\n")
        assert await get("/ready") == (503, b"the broker has failed\n")
        await broker.stop(clean=False)
        await server.close()

    run_sim(story)


def test_a_failed_broker_is_unhealthy() -> None:
    async def story(world: World) -> None:
        broker = make_broker(world, broker_settings())
        server = metrics_server(broker, lambda: PROCESS)
        await server.start("127.0.0.1", METRICS_PORT)
        await broker.start()

        broker.failed.set_exception(RuntimeError("a bug"))

        assert await get("/health") == (503, b"the broker has failed\n")
        await broker.stop(clean=False)
        await server.close()

    run_sim(story)
