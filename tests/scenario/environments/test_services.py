"""The pytest fixtures with services of other frameworks: an aiokafka worker, and a FastAPI application."""

from pathlib import Path

import pytest

from support.kit import Ended, installed_session, pytest_session

WORKER = """
import asyncio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

async def shout(bootstrap, words, shouts):
    consumer = AIOKafkaConsumer(words, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    async with consumer, AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        async for message in consumer:
            await producer.send_and_wait(shouts, message.value.upper())

async def story(bootstrap, words, shouts):
    worker = asyncio.create_task(shout(bootstrap, words, shouts))
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(words, b"hello")
    consumer = AIOKafkaConsumer(shouts, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    async with consumer:
        heard = await asyncio.wait_for(anext(consumer), 30)
    worker.cancel()
    await asyncio.wait([worker])
    return heard.value

def test_lines_are_echoed(barnabas_broker, barnabas_topics):
    assert asyncio.run(story(barnabas_broker.bootstrap, barnabas_topics(), barnabas_topics())) == b"HELLO"
"""

# The service reads from the topic that it writes to, all in the lifespan of its application.
SERVICE = """
import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from fastapi import FastAPI
from fastapi.testclient import TestClient

from barnabas.testing import wait_until


def make_app(bootstrap: str, topic: str) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        async with consumer, AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            app.state.producer, app.state.seen = producer, []
            reading = asyncio.create_task(read(app, consumer))
            yield
            reading.cancel()

    async def read(app: FastAPI, consumer: AIOKafkaConsumer) -> None:
        async for message in consumer:
            app.state.seen.append(json.loads(message.value))

    app = FastAPI(lifespan=lifespan)

    @app.post("/orders", status_code=202)
    async def take(order: dict[str, int]) -> dict[str, int]:
        written = await app.state.producer.send_and_wait(topic, json.dumps(order).encode())
        return {"offset": written.offset}

    @app.get("/orders")
    async def seen() -> list[dict[str, int]]:
        return app.state.seen

    return app


@pytest.mark.parametrize("price", [3, 4])
def test_an_order_is_taken_and_seen(barnabas_broker, barnabas_topic, price):
    with TestClient(make_app(barnabas_broker.bootstrap, barnabas_topic)) as client:
        assert client.post("/orders", json={"price": price}).json() == {"offset": 0}
        wait_until(lambda: client.get("/orders").json() == [{"price": price}])

    [written] = barnabas_broker.wait_for_records(barnabas_topic)
    assert json.loads(written.value) == {"price": price}
"""


def session(directory: Path, program: str, *words: str, plugins: tuple[str, ...] = ()) -> Ended:
    (directory / "pytest.ini").write_text("[pytest]\n")
    (directory / "test_it.py").write_text(program)
    return pytest_session(directory, *words, plugins=plugins)


def test_an_aiokafka_worker_is_tested_with_the_fixtures(tmp_path: Path) -> None:
    ended = session(tmp_path, WORKER)

    assert ended.code == 0, ended.out
    assert "1 passed" in ended.out


def test_a_fastapi_service_is_tested_with_the_fixtures(tmp_path: Path) -> None:
    for module in ("fastapi", "httpx2"):
        pytest.importorskip(module, reason=f"{module} is not installed; the dev extra has it")

    ended = session(tmp_path, SERVICE)

    assert ended.code == 0, ended.out
    assert "2 passed" in ended.out


# Who shares a module should share a worker, and so a broker.
SPREAD = """
import pytest

@pytest.mark.parametrize("number", range(4))
def test_it(barnabas_broker, barnabas_topic, worker_id, number):
    with barnabas_broker.producer() as producer:
        producer.send(barnabas_topic, b"%d" % number)
    [record] = barnabas_broker.wait_for_records(barnabas_topic)
    assert record.value == b"%d" % number
    with open("seen.txt", "a") as seen:
        seen.write(f"{__name__} {worker_id} {barnabas_broker.bootstrap} {barnabas_broker.directory}\\n")
"""


@pytest.mark.parametrize("how", ["load", "loadscope"])
def test_workers_of_xdist_have_brokers_of_their_own_that_end_with_them(how: str, tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(SPREAD)

    ended = session(tmp_path, SPREAD, "-n", "2", "--dist", how, plugins=("xdist.plugin",))

    assert ended.code == 0, ended.out
    assert "8 passed" in ended.out
    seen = [line.split() for line in (tmp_path / "seen.txt").read_text().splitlines()]
    assert len(seen) == 8
    assert len({worker for _, worker, _, _ in seen}) == len({bootstrap for _, _, bootstrap, _ in seen})
    assert not [directory for _, _, _, directory in seen if Path(directory).exists()]
    if how == "loadscope":
        assert len({(module, worker) for module, worker, _, _ in seen}) == 2


def test_without_the_plugin_there_are_no_fixtures_but_brokers_start(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        """
from barnabas.testing import Broker

def test_without():
    with Broker(topics=["orders"]) as broker:
        assert broker.records("orders") == []

def test_with(barnabas_broker):
    pass
"""
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    ended = installed_session(tmp_path, "-p", "no:barnabas")

    assert "fixture 'barnabas_broker' not found" in ended.out
    assert "1 passed, 1 error" in ended.out
