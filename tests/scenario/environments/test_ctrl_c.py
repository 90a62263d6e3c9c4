"""Ctrl-C in programs and test sessions: they end soon, with KeyboardInterrupt, and leave nothing behind."""

import signal
from pathlib import Path

import pytest

from support.process.user_programs import PROLOGUE, Ended, Program, interrupted

SOON_S = 10.0
# What `with producer:` may take to deliver when it is interrupted is 5 s.
DELIVERY_GIVEN_UP_S = 20.0


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


def check(ended: Ended, scratch: Path, *, within_s: float = SOON_S) -> None:
    assert ended.code == -signal.SIGINT, ended.err
    assert ended.err.endswith("KeyboardInterrupt\n"), ended.err
    assert ended.took_s < within_s
    assert list(scratch.iterdir()) == []


PROGRAMS = {
    "a loop over messages": """
from barnabas.testing import Broker
with Broker(topics=["orders"], storage="disk") as broker, broker.producer() as producer:
    producer.send("orders", b"one").result(30)
    with broker.consumer(group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["orders"])
        for message in consumer:
            here()
""",
    "work on a message": """
import time
from barnabas.testing import Broker
with Broker(topics=["orders"], storage="disk") as broker, broker.producer() as producer:
    producer.send("orders", b"one").result(30)
    with broker.consumer(group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["orders"])
        for message in consumer:
            here()
            time.sleep(600)
""",
    "a callback": """
import time
from barnabas.testing import Broker

def on_assigned(tps):
    here()
    time.sleep(600)

with Broker(topics=["orders"], storage="disk") as broker:
    with broker.consumer(group_id="g") as consumer:
        consumer.subscribe(["orders"], on_assigned=on_assigned)
        next(consumer)
""",
    "a wait of the test kit": """
from barnabas.testing import Broker
with Broker(topics=["orders"], storage="disk") as broker:
    here()
    broker.wait_for_records("orders", timeout_s=600)
""",
    "a coroutine that consumes": """
import asyncio
from barnabas.client import Consumer
from barnabas.testing import Broker

async def main():
    async with Broker(topics=["orders"], storage="disk") as broker:
        async with Consumer(bootstrap_servers=broker.bootstrap, group_id="g") as consumer:
            await consumer.subscribe(["orders"])
            here()
            await anext(consumer)

asyncio.run(main())
""",
    "an admin call without a broker": """
from barnabas.testing import Broker
with Broker(storage="disk") as broker, broker.admin() as admin, broker.down():
    here()
    admin.list_topics()
""",
}


@pytest.mark.parametrize("where", PROGRAMS)
def test_ctrl_c_ends_a_program(where: str, scratch: Path) -> None:
    check(interrupted(PROGRAMS[where], scratch), scratch)


BLOCKING_FLUSH = """
from barnabas.testing import Broker
with Broker(topics=["orders"], storage="disk") as broker:
    producer = broker.producer()
    producer.send("orders", b"one").result(30)
    with broker.down(), producer:
        producer.send("orders", b"two")
        here()
        producer.flush()
"""
ASYNC_FLUSH = """
import asyncio
from barnabas.client import Producer
from barnabas.testing import Broker

async def main():
    async with Broker(topics=["orders"], storage="disk") as broker:
        producer = Producer(bootstrap_servers=broker.bootstrap)
        await producer.start()
        await (await producer.send("orders", b"one"))
        with broker.down():
            try:
                await producer.send("orders", b"two")
                here()
                await producer.flush()
            except BaseException as error:
                await producer.__aexit__(type(error), error, None)
                raise

asyncio.run(main())
"""
FULL_BUFFER = """
from barnabas.testing import Broker
with Broker(topics=["orders"], storage="disk") as broker:
    producer = broker.producer(buffer_memory=1_000_000, max_block_ms=600_000)
    producer.send("orders", b"one").result(30)
    with broker.down(), producer:
        here()
        while True:
            producer.send("orders", b"x" * 100_000)
"""


def test_ctrl_c_ends_a_program_whose_producer_cannot_deliver(tmp_path: Path) -> None:
    """Without the limit they wait for delivery.timeout.ms, which is two minutes."""
    programs = {"blocking": BLOCKING_FLUSH, "async": ASYNC_FLUSH, "full": FULL_BUFFER}
    started = {
        name: (Program(["-X", "faulthandler", "-c", PROLOGUE + text], tmp_path / name), tmp_path / name)
        for name, text in programs.items()
    }
    for program, _ in started.values():
        program.press_ctrl_c()
    for program, scratch in started.values():
        check(program.ended(), scratch, within_s=DELIVERY_GIVEN_UP_S)


def test_ctrl_c_in_a_test_with_the_fixture_ends_the_session(tmp_path: Path, scratch: Path) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "pytest.ini").write_text("[pytest]\nbarnabas_storage = disk\n")
    (suite / "conftest.py").write_text(
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    )
    (suite / "test_it.py").write_text(
        """
import sys

def test_it(barnabas_broker, barnabas_topic):
    # Imports everything. Python ends by SIGINT, whatever pytest says, if Ctrl-C ever came within an exec() of
    # text, and named tuples are made by one.
    barnabas_broker.wait_for_records(barnabas_topic, 0)
    # Past pytest, which keeps what tests print.
    print("here", file=sys.__stdout__, flush=True)
    barnabas_broker.wait_for_records(barnabas_topic, timeout_s=600)
"""
    )
    # By name and not by its entry point: so it is this source's, wherever another one is installed.
    plugins = ["-p", "no:cacheprovider", "-p", "barnabas.testing.plugin"]
    session = Program(
        ["-m", "pytest", "-q", "-s", *plugins, str(suite)], scratch, {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    )

    session.press_ctrl_c()

    ended = session.ended()
    assert ended.code == pytest.ExitCode.INTERRUPTED, ended
    assert "KeyboardInterrupt" in ended.out
    assert ended.took_s < SOON_S
    assert list(scratch.iterdir()) == []
