"""A broker inside this process: its methods, its errors, and its cleanup."""

import asyncio
import gc
import logging
import os
import shutil
import signal
import socket
import threading
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.settings import InvalidSetting
from barnabas.client.errors import Refused, UnknownTopic
from barnabas.storage.directory.log_directory import DirectoryInUse
from barnabas.testing import Broker, BrokerDied, BrokerStopped, wait_until
from barnabas.testing.places import PREFIX
from support.kit import consume, produce


def test_a_record_is_produced_and_consumed() -> None:
    with Broker(topics=["orders"]) as broker:
        produce(broker.bootstrap, "orders", b"one", b"two")

        assert consume(broker.bootstrap, "orders", 2) == [b"one", b"two"]


@pytest.mark.parametrize("storage", ["auto", "memory", "disk"])
def test_its_directory_is_removed(storage: str) -> None:
    with Broker(topics=["orders"], storage=storage) as broker:
        assert (broker.directory / "orders-0" / "00000000000000000000.log").exists()

    assert not broker.directory.parent.exists()
    assert broker.directory.parent.name.startswith(PREFIX)


def test_settings_and_topics_are_applied() -> None:
    with Broker({"num.partitions": 3}, topics=["a"], auto_create_topics_enable=False) as broker:
        broker.create_topic("b")
        broker.create_topic("c", partitions=2, settings={"cleanup.policy": ["compact", "delete"]})

        made = sorted(path.name for path in broker.directory.glob("?-?"))

    assert made == ["a-0", "a-1", "a-2", "b-0", "b-1", "b-2", "c-0", "c-1"]


def test_topics_can_have_partition_counts() -> None:
    with Broker(topics={"a": 2, "b": 1}) as broker:
        assert sorted(path.name for path in broker.directory.glob("?-?")) == ["a-0", "a-1", "b-0"]


def test_an_invalid_topic_raises_the_clients_error() -> None:
    with Broker(topics=["orders"]) as broker:
        with pytest.raises(Refused, match="topic orders: TOPIC_ALREADY_EXISTS"):
            broker.create_topic("orders")
        with pytest.raises(UnknownTopic):
            broker.delete_topic("nobody-made-it")

        broker.delete_topic("orders")
        broker.create_topic("orders")


def test_a_restart_keeps_port_and_data() -> None:
    with Broker(topics=["orders"]) as broker:
        before = broker.bootstrap
        produce(broker.bootstrap, "orders", b"one")

        broker.restart()
        produce(broker.bootstrap, "orders", b"two")

        assert broker.bootstrap == before
        assert consume(broker.bootstrap, "orders", 2) == [b"one", b"two"]


@pytest.mark.parametrize("clean", [True, False])
def test_connections_fail_while_it_is_down(clean: bool) -> None:
    with Broker(topics=["orders"]) as broker:
        with broker.down(clean=clean):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", broker.port))
            with pytest.raises(BrokerStopped, match="down"):
                broker.create_topic("more")

        socket.create_connection(("127.0.0.1", broker.port)).close()


def test_a_broker_that_is_down_can_be_stopped() -> None:
    with Broker() as broker:
        broker._here().run(lambda: broker._here().down(clean=True)).result()

    assert not broker.directory.exists()


def test_data_in_a_given_directory_is_kept_and_can_be_served_again(tmp_path: Path) -> None:
    with Broker(directory=tmp_path / "data", topics=["orders"], node_id=7) as broker:
        produce(broker.bootstrap, "orders", b"one")

    with Broker(directory=tmp_path / "data") as broker:
        assert consume(broker.bootstrap, "orders", 1) == [b"one"]
        assert (broker.directory / "meta.properties").read_text().count("node.id=7") == 1


def test_several_run_at_once() -> None:
    with Broker(topics=["a"]) as first, Broker(topics=["a"]) as second:
        produce(first.bootstrap, "a", b"first")
        produce(second.bootstrap, "a", b"second")

        assert consume(first.bootstrap, "a", 1) == [b"first"]
        assert consume(second.bootstrap, "a", 1) == [b"second"]


def test_the_callers_loop_is_not_blocked_by_start_and_stop() -> None:
    async def begun(work: Coroutine[Any, Any, object]) -> "asyncio.Task[object]":
        """Check that the call is unfinished after one iteration of the loop: it does not block."""
        task = asyncio.create_task(work)
        await asyncio.sleep(0)
        assert not task.done()
        return task

    async def story() -> Path:
        broker = Broker(topics=["orders"])
        await (await begun(broker.__aenter__()))
        await asyncio.to_thread(produce, broker.bootstrap, "orders", b"one")
        await (await begun(broker.__aexit__(None, None, None)))
        return broker.directory

    assert not asyncio.run(story()).exists()


def test_it_works_in_an_async_with() -> None:
    async def story() -> Path:
        async with Broker(topics=["orders"]) as broker:
            await asyncio.to_thread(produce, broker.bootstrap, "orders", b"one")
        return broker.directory

    assert not asyncio.run(story()).exists()


def test_a_cancelled_start_leaves_nothing_behind() -> None:
    async def story() -> Broker:
        broker = Broker()
        starting = asyncio.create_task(broker.__aenter__())
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        return broker

    broker = asyncio.run(story())

    assert not broker.directory.exists()
    assert not broker_threads()


# Errors


def test_an_unknown_setting_is_rejected_by_name() -> None:
    with pytest.raises(InvalidSetting, match=r"did you mean num\.partitions") as caught:
        Broker(num_partition=3).start()

    assert caught.value.name == "num.partition"


def test_a_port_in_use_raises_the_original_error() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        broker = Broker(port=other.getsockname()[1])

        with pytest.raises(OSError, match=r"[Aa]ddress already in use"):
            broker.start()

    assert not broker.directory.exists()


def test_the_error_of_a_failed_start_has_the_last_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="barnabas")

    with pytest.raises(Refused) as caught:
        Broker(topics=["a/b"]).start()

    [note] = caught.value.__notes__
    assert note.startswith("last log lines of the broker:\n")
    assert "listening name=PLAINTEXT host=127.0.0.1" in note


def test_a_directory_in_use_raises_the_original_error(tmp_path: Path) -> None:
    with Broker(directory=tmp_path), pytest.raises(DirectoryInUse):
        Broker(directory=tmp_path).start()


def test_an_invalid_topic_fails_the_start() -> None:
    broker = Broker(topics=["a/b"])

    with pytest.raises(Refused, match=r"topic a/b: INVALID_TOPIC_EXCEPTION"):
        broker.start()

    assert not broker.directory.exists()


def test_a_dead_broker_raises_its_cause_with_the_log() -> None:
    broker = Broker(topics=["orders"]).start()
    lose_disk(broker)

    with pytest.raises(BrokerDied) as asked:
        wait_until(lambda: broker.create_topic("more"), what="the death to be seen")
    with pytest.raises(BrokerDied):
        broker.stop()

    assert isinstance(asked.value.cause, Exception)
    assert any("broker failed" in line for line in asked.value.log)
    assert "broker failed" in "\n".join(asked.value.__notes__)
    assert not broker.directory.exists()


def test_the_end_of_a_block_raises_if_the_broker_died() -> None:
    def body() -> None:
        with Broker(topics=["orders"]) as broker:
            lose_disk(broker)
            wait_until(lambda: broker._here().error)

    with pytest.raises(BrokerDied):
        body()


def test_the_error_of_a_block_wins_and_has_the_death_as_a_note() -> None:
    def body() -> None:
        with Broker(topics=["orders"]) as broker:
            lose_disk(broker)
            wait_until(lambda: broker._here().error)
            raise LookupError("what the test found")

    with pytest.raises(LookupError) as caught:
        body()

    assert "the broker died" in "\n".join(caught.value.__notes__)


def lose_disk(broker: Broker) -> None:
    """Replace the log directory with a file, and make the broker notice."""
    shutil.rmtree(broker.directory)
    broker.directory.touch()
    with suppress(Refused, BrokerDied):
        broker.create_topic("noticed")


def test_a_broker_that_does_not_run_raises_broker_stopped() -> None:
    broker = Broker()
    for use in (lambda: broker.bootstrap, lambda: broker.directory, broker.stop):
        with pytest.raises(BrokerStopped, match="was not started"):
            use()

    broker.start()
    broker.stop()

    with pytest.raises(BrokerStopped, match="was stopped"):
        broker.create_topic("late")
    with pytest.raises(BrokerStopped, match="can be started only once"):
        broker.start()


# Cleanup


def broker_threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("barnabas-")]


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def test_twenty_consecutive_brokers_leave_nothing_behind() -> None:
    def one() -> Path:
        with Broker(topics=["orders"]) as broker:
            socket.create_connection(("127.0.0.1", broker.port)).close()
        return broker.directory.parent

    # The first broker opens descriptors that the process keeps, such as the source of random bytes.
    above = one().parent
    before = descriptors()

    directories = [one() for _ in range(20)]

    assert descriptors() <= before
    assert broker_threads() == []
    assert not [path for path in directories if path.exists()]
    assert not [task for task in gc.get_objects() if isinstance(task, asyncio.Task) and not task.done()]
    assert above.exists()


def test_a_dropped_broker_is_stopped() -> None:
    broker = Broker().start()
    directory = broker.directory

    del broker
    gc.collect()

    wait_until(lambda: not directory.parent.exists() and not broker_threads(), what="its end")


def test_process_wide_settings_are_not_changed() -> None:
    def process() -> list[object]:
        return [
            *(signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)),
            gc.get_threshold(),
            gc.get_freeze_count(),
            asyncio.get_event_loop_policy(),
            logging.getLogger().handlers,
            logging.getLogger().level,
            logging.getLogger("barnabas").level,
        ]

    before = process()
    with Broker(topics=["orders"]):
        during = process()

    assert during == before
    assert process() == before


def test_temporary_data_is_not_synced_and_kept_data_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs: list[int] = []
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, syncs.append)

    with Broker(topics=["orders"], storage="disk") as broker:
        broker.restart()
    assert syncs == []

    with Broker(topics=["orders"], directory=tmp_path):
        pass
    assert syncs
