"""Python's strictest modes: nothing that a user's program does makes Barnabas warn."""

from pathlib import Path

import pytest

from support.kit import SOURCE
from support.process.user_programs import Ended, run

STRICT = ("-W", "error", "-X", "dev")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


IMPORTS = """
import importlib, pkgutil, barnabas
names = [one.name for one in pkgutil.walk_packages(barnabas.__path__, "barnabas.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(len(names) > 500)
"""
# Produces, consumes and administers, from threads and from coroutines.
STORY = """
import asyncio
from barnabas.client import Admin, Consumer, Producer
from barnabas.testing import Broker, records_async, wait_for_records_async

async def story(bootstrap):
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.create_topic("second", partitions=2)
        print(sorted(await admin.list_topics()))
    async with Producer(bootstrap_servers=bootstrap, transactional_id="t") as producer:
        async with producer.transaction():
            await producer.send("orders", b"three")
    async with Consumer(
        bootstrap_servers=bootstrap, group_id="async", auto_offset_reset="earliest"
    ) as consumer:
        await consumer.subscribe(["orders"])
        print((await anext(consumer)).value)
        await consumer.commit()
    async with Broker(topics=["own"]) as own:
        print(await records_async(own.bootstrap, "own"))

with Broker(topics=["orders"]) as broker:
    with broker.producer() as producer:
        producer.send("orders", b"one")
        producer.send("orders", b"two").result(30)
    with broker.consumer(group_id="blocking", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["orders"])
        print(next(consumer).value)
        consumer.commit()
    with broker.admin() as admin:
        print(list(admin.list_groups()))
    asyncio.run(story(broker.bootstrap))
    broker.restart()
    print(broker.wait_for_records("orders", 3)[2].value)
"""
SAID = "b'one'\n['blocking']\n['orders', 'second']\nb'one'\n[]\nb'three'\n"


def complaints(ended: Ended) -> list[str]:
    """Return the lines on stderr without asyncio's debug messages about callbacks over 0.1 s."""
    return [line for line in ended.err.splitlines() if not line.startswith("Executing <")]


def test_every_module_is_imported_without_a_warning(scratch: Path) -> None:
    ended = run(IMPORTS, scratch, *STRICT)

    assert (ended.code, ended.out, ended.err) == (0, "True\n", "")


@pytest.mark.parametrize("options", [STRICT, (*STRICT, "-OO")], ids=" ".join)
def test_programs_end_without_a_warning(options: tuple[str, ...], scratch: Path) -> None:
    ended = run(STORY, scratch, *options)

    assert (ended.code, ended.out, complaints(ended)) == (0, SAID, [])


def test_an_isolated_interpreter_will_do(scratch: Path) -> None:
    """With -I neither the environment nor the current directory is looked at."""
    ended = run(f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n{STORY}", scratch, *STRICT, "-I")

    assert (ended.code, ended.out, complaints(ended)) == (0, SAID, [])


FORGETFUL = """
import gc
from barnabas.testing import Broker
with Broker(topics=["orders"]) as broker:
    dropped = broker.producer()
    dropped.send("orders", b"one").result(30)
    kept = broker.consumer(auto_offset_reset="earliest")
    kept.assign_topic("orders")
    print(next(kept).value)
    del dropped
    gc.collect()
    print("served to the end")
"""


def forgetful(scratch: Path, *options: str) -> Ended:
    ended = run(FORGETFUL, scratch, *options)
    assert (ended.code, ended.out) == (0, "b'one'\nserved to the end\n"), ended.err
    return ended


def test_an_unclosed_client_causes_a_resource_warning(scratch: Path) -> None:
    said = forgetful(scratch, "-X", "dev").err

    assert said.count("ResourceWarning: ") == 2
    assert "unclosed barnabas producer: use it in a `with` block, or close() it" in said
    assert "unclosed barnabas consumer: use it in a `with` block, or close() it" in said
    # And nothing else complains, such as its sockets and tasks.
    assert said.count("unclosed") == said.count("unclosed barnabas") + said.count("_warn_unclosed")
    assert "Traceback" not in said
    assert "destroyed" not in said


def test_without_developer_mode_nothing_is_said_of_it(scratch: Path) -> None:
    assert forgetful(scratch).err == ""
