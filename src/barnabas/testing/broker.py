"""A real broker inside this process: a cluster of one node, on a free port of 127.0.0.1.

    with Broker(topics=["orders"]) as broker:             # or: async with
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})

The broker runs in its own thread and event loop (node_thread.py explains why), keeps its files in a temporary
directory (places.py), and has Kafka's defaults for settings that are not given. Several brokers can run at
once. In a fork of this process there is no broker, and its methods raise StartedElsewhere.
"""

import asyncio
import itertools
import os
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.testing.errors import BrokerDied, BrokerStopped, StartedElsewhere
from barnabas.testing.node_thread import CALL_TIMEOUT_S, START_TIMEOUT_S, STOP_TIMEOUT_S, NodeThread
from barnabas.testing.places import Storage, given_place, temporary_place
from barnabas.testing.settings import Plan, TopicPlan, as_text, given_settings

if TYPE_CHECKING:
    from pathlib import Path

    from barnabas.client.blocking import Admin, Consumer, Producer
    from barnabas.client.consumer.message import Message
    from barnabas.server.broker import Broker as ServerBroker

T = TypeVar("T")

WAIT_TIMEOUT_S: Final = 10.0
NEARLY_GONE_S: Final = 5.0

_numbers: Final = itertools.count(1)


class Broker:
    """Call start() and stop(), or use it in a `with` or `async with` statement.

    Its methods block for some milliseconds, even in a coroutine. Only `async with` awaits.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        topics: Iterable[str] | Mapping[str, int] = (),
        storage: Storage = "auto",
        directory: str | os.PathLike[str] | None = None,
        port: int = 0,
        **named: object,
    ) -> None:
        """`settings` have Kafka's names; keywords use underscores. `topics` are created at the start.

        With `directory` the data is kept there for another start. Otherwise it is temporary: in memory, on
        disk, or in memory if there is enough space (auto).
        """
        self._settings = given_settings(settings, named)
        counts = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics)
        self._topics = tuple(TopicPlan(name, count, {}) for name, count in counts.items())
        self._storage: Storage = storage
        self._given = None if directory is None else os.fspath(directory)
        self._wanted_port = port
        self._directory: str | None = None
        self._bootstrap: str | None = None
        self._node: NodeThread | None = None
        self._pid = os.getpid()

    # Starting and stopping

    def start(self) -> "Broker":
        """Start the broker and return when it accepts connections. Raises the error of a failed start."""
        node = self._make_node()
        try:
            node.start()
            self._bootstrap = node.result(node.started, START_TIMEOUT_S, "started")
        except BaseException:
            # A failed start ends by itself; this handles Ctrl-C.
            node.ask_to_stop(clean=False)
            node.wait_ended()
            raise
        return self

    def stop(self) -> None:
        """Stop the broker and remove its temporary directory. BrokerDied if it had crashed."""
        node = self._here()
        node.ask_to_stop()
        node.wait_ended()
        if node.error is not None:
            raise node.why_gone()

    def restart(self) -> None:
        """Stop the broker cleanly and start it again with the same port and data."""
        with self.down():
            pass

    @contextmanager
    def down(self, *, clean: bool = True) -> Iterator[None]:
        """Stop the broker for the `with` block, then start it again with the same port and data.

        With `clean=False` the logs are left as after a crash, and are recovered at the next start.
        """
        node = self._here()
        node.result(node.run(lambda: node.down(clean=clean)), STOP_TIMEOUT_S, "stopped")
        try:
            yield
        finally:
            node.result(node.run(node.up), START_TIMEOUT_S, "restarted")

    def __enter__(self) -> "Broker":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except BrokerDied as died:
            _raise_or_note(died, error)

    async def __aenter__(self) -> "Broker":
        node = self._make_node()
        try:
            node.start()
            self._bootstrap = await asyncio.wrap_future(node.started)
        except BaseException:
            node.ask_to_stop(clean=False)
            await _ended(node)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        node = self._here()
        node.ask_to_stop()
        await _ended(node)
        if node.error is not None:
            _raise_or_note(node.why_gone(), error)

    def _make_node(self) -> NodeThread:
        if self._node is not None:
            raise BrokerStopped("a Broker can be started only once; create a new one")
        place = temporary_place(self._storage) if self._given is None else given_place(self._given)
        self._directory = place.data
        plan = Plan(self._settings, place.data, place.is_temporary, self._wanted_port, self._topics)
        self._pid = os.getpid()
        self._node = node = NodeThread(plan, place, name=f"barnabas-broker-{next(_numbers)}")
        # A broker that is dropped without stop() is stopped when it is garbage-collected. At exit,
        # node_thread.py stops the remaining threads.
        weakref.finalize(self, node.ask_to_stop, clean=False).atexit = False
        return node

    # Addresses and files

    @property
    def bootstrap(self) -> str:
        """The address HOST:PORT for `bootstrap.servers`."""
        if self._bootstrap is None:
            raise BrokerStopped("the broker was not started")
        return self._bootstrap

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])

    @property
    def directory(self) -> "Path":
        """The log directory, in Kafka's format."""
        if self._directory is None:
            raise BrokerStopped("the broker was not started")
        # Imported here: few tests need it, and its import takes a good part of a broker's start.
        from pathlib import Path

        return Path(self._directory)

    # Topics

    def create_topic(
        self, name: str, partitions: int | None = None, settings: Mapping[str, object] | None = None
    ) -> str:
        """Create a topic that is ready for use on return. `partitions` defaults to num.partitions."""
        values = {key: as_text(value) for key, value in (settings or {}).items()}

        async def create(broker: "ServerBroker") -> None:
            from barnabas.testing.node import create_topics

            await create_topics(broker, [TopicPlan(name, partitions, values)])

        self._ask(create)
        return name

    def delete_topic(self, name: str) -> None:
        async def delete(broker: "ServerBroker") -> None:
            from barnabas.testing.node import delete_topic

            await delete_topic(broker, name)

        self._ask(delete)

    # Clients

    def admin(self, settings: Mapping[str, object] | None = None, **named: object) -> "Admin":
        """Return a blocking admin client of this broker. Use it in a `with` statement."""
        from barnabas.client.blocking import Admin

        return Admin(self._bound(settings, named))

    def producer(self, settings: Mapping[str, object] | None = None, **named: object) -> "Producer":
        """Return a blocking producer for this broker. Use it in a `with` statement."""
        from barnabas.client.blocking import Producer

        return Producer(self._bound(settings, named))

    def consumer(self, settings: Mapping[str, object] | None = None, **named: object) -> "Consumer":
        """Return a blocking consumer for this broker. Use it in a `with` statement."""
        from barnabas.client.blocking import Consumer

        return Consumer(self._bound(settings, named))

    def _bound(self, settings: Mapping[str, object] | None, named: Mapping[str, object]) -> dict[str, object]:
        dotted = {name.replace("_", "."): value for name, value in named.items()}
        return {"bootstrap.servers": self.bootstrap, **(settings or {}), **dotted}

    # Records

    def records(self, topic: str) -> "list[Message]":
        """Return all records of a topic, by partition and offset."""
        from barnabas.testing.reading import records

        self._need_alive()
        return records(self.bootstrap, topic)

    def wait_for_records(
        self, topic: str, count: int = 1, *, timeout_s: float = WAIT_TIMEOUT_S
    ) -> "list[Message]":
        """Wait for the first `count` records of a topic. WaitTimedOut lists the records received so far."""
        from barnabas.testing.reading import wait_for_records

        self._need_alive()
        return wait_for_records(self.bootstrap, topic, count, timeout_s=timeout_s)

    def wait_for_offset(
        self, topic: str, offset: int, *, partition: int = 0, timeout_s: float = WAIT_TIMEOUT_S
    ) -> int:
        """Wait until the end offset of a partition is at least `offset`, and return it."""
        from barnabas.testing.reading import wait_for_offset

        self._need_alive()
        return wait_for_offset(self.bootstrap, topic, offset, partition=partition, timeout_s=timeout_s)

    # Calls into the broker's thread

    def _ask(self, ask: "Callable[[ServerBroker], Awaitable[T]]") -> T:
        node = self._here()
        return node.result(node.call(ask), CALL_TIMEOUT_S, "responded")

    def _need_alive(self) -> None:
        node = self._here()
        if node.ended.done() or node.error is not None:
            raise node.why_gone()

    def _here(self) -> NodeThread:
        if self._pid != os.getpid():
            raise StartedElsewhere(started_in=self._pid, here=os.getpid())
        if self._node is None:
            raise BrokerStopped("the broker was not started")
        return self._node


async def _ended(node: NodeThread) -> None:
    await asyncio.wait([asyncio.wrap_future(node.ended)], timeout=STOP_TIMEOUT_S)
    # The thread ends right after `ended`; otherwise this raises BrokerStuck.
    node.wait_ended(NEARLY_GONE_S if node.ended.done() else 0)


def _raise_or_note(died: BaseException, other: BaseException | None) -> None:
    """Raise BrokerDied, or add it as a note: the error of the test must not be hidden."""
    if other is None:
        raise died
    other.add_note(f"{died}\n" + "\n".join(getattr(died, "__notes__", ())))
