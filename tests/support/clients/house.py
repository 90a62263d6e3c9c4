"""A broker of ours with a well-behaved client in it, for tests of those who behave badly."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.clients.bad_peer import open_files, resident_bytes
from support.clients.neighbour import Neighbour
from support.clients.stage import Stage
from support.process.our_broker import OurBroker


@dataclass(frozen=True)
class House:
    """The broker, who lives there, and an empty topic for the others."""

    broker: OurBroker
    neighbour: Neighbour
    topic: str

    @property
    def address(self) -> str:
        return self.broker.address

    def memory(self) -> int:
        return resident_bytes(self.broker.pid)

    def files(self) -> int:
        return open_files(self.broker.pid)


@contextmanager
def house_with(root: Path, settings: Mapping[str, object]) -> Iterator[House]:
    broker = OurBroker(root, settings={"auto.create.topics.enable": "false", **settings})
    with broker.running():
        stage = Stage(broker, "neighbour")
        neighbour = Neighbour(broker.address, stage.topic())
        neighbour.start()
        yield House(broker, neighbour, stage.topic())
        neighbour.stop()
