"""Code inside a running event loop, as in a Jupyter notebook, whose cells run in the kernel's loop.

A blocking client has a loop in a thread of its own. So it neither fails as asyncio.run() does where a loop
runs, nor waits for the loop that it holds up.
"""

from pathlib import Path

import pytest

from support.process.user_programs import run

# Every cell is called, or awaited, inside of one running loop.
CELLS = """
import asyncio
from barnabas.client import Consumer as AsyncConsumer, Producer as AsyncProducer
from barnabas.client.blocking import Admin, Consumer, Producer
from barnabas.testing import Broker, records, wait_for_records_async

def blocking_clients(bootstrap):
    with Producer(bootstrap_servers=bootstrap) as producer:
        print(producer.send("orders", b"one").result(30).offset)
    with Consumer(bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["orders"], on_assigned=lambda tps: print("assigned", len(tps)))
        print(next(consumer).value)
        consumer.commit()
    with Admin(bootstrap_servers=bootstrap) as admin:
        print(list(admin.list_topics()))

async def async_clients(bootstrap):
    async with AsyncProducer(bootstrap_servers=bootstrap) as producer:
        print((await (await producer.send("orders", b"two"))).offset)
    async with AsyncConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        await consumer.assign_topic("orders")
        print([(await anext(consumer)).value for _ in range(2)])

async def kernel():
    broker = Broker(topics=["orders"]).start()
    blocking_clients(broker.bootstrap)
    await async_clients(broker.bootstrap)
    with broker.down():
        pass
    print(len(broker.wait_for_records("orders", 2)), len(records(broker.bootstrap, "orders")))
    broker.stop()
    async with Broker(topics=["orders"]) as broker:
        blocking_clients(broker.bootstrap)
        print(len(await wait_for_records_async(broker.bootstrap, "orders")))

asyncio.run(kernel())
"""


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


def test_both_forms_of_the_client_and_the_test_kit_work_inside_a_running_loop(scratch: Path) -> None:
    ended = run(CELLS, scratch, "-X", "faulthandler")

    blocking = ["0", "assigned 1", "b'one'", "['orders']"]
    assert ended.err == ""
    assert ended.out.splitlines() == [*blocking, "1", "[b'one', b'two']", "2 2", *blocking, "1"]


NOTEBOOK = '''
import sys
import nbformat
from nbclient import NotebookClient

cells = ["""
from barnabas.testing import Broker
broker = Broker(topics=["orders"]).start()
""", """
with broker.producer() as producer:
    print(producer.send("orders", b"one").result(30).offset)
""", """
from barnabas.client import Consumer
async with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
    await consumer.assign_topic("orders")
    print((await anext(consumer)).value)
"""]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
print("".join(output.get("text", str(output)) for cell in notebook.cells for output in cell.outputs), end="")
'''


def test_a_notebook_uses_a_broker_and_both_forms_of_the_client(scratch: Path) -> None:
    for module in ("ipykernel", "nbclient"):
        pytest.importorskip(module, reason=f"{module} is not installed: pip install ipykernel nbclient")

    ended = run(NOTEBOOK, scratch)

    assert (ended.code, ended.out) == (0, "0\nb'one'\n"), ended.err
    # The broker that the notebook did not stop has ended with its kernel.
    assert list(scratch.iterdir()) == []
