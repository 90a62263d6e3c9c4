"""The brokers that clients of a listener can reach: their endpoints, and which replicas are offline."""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Final, TypeVar

from barnabas.controller.leadership import has_online_directory
from barnabas.metadata.image import MetadataImage, PartitionImage

T = TypeVar("T")


class ReachableBrokers:
    """Computed once for the brokers of an image, then used for every partition."""

    __slots__ = ("_directories", "_image", "alive", "brokers", "listening")

    def __init__(self, image: MetadataImage, listener: str) -> None:
        brokers = image.brokers
        self.brokers: Final = brokers
        # Brokers that have the listener, and those of them that are not fenced.
        self.listening: Final = frozenset(
            one.id for one in brokers.values() if one.endpoint(listener) is not None
        )
        self.alive: Final = frozenset(one for one in self.listening if not brokers[one].fenced)
        self._image: Final = image
        self._directories: Final = {one: frozenset(brokers[one].registration.log_dirs) for one in self.alive}

    def leader(self, partition: PartitionImage) -> int | None:
        """The leader, or None if clients cannot reach it."""
        return partition.leader if partition.leader in self.listening else None

    def offline(self, partition: PartitionImage) -> list[int]:
        """Replicas whose broker is fenced or not reachable, or whose directory is offline."""
        alive, directories, image = self.alive, self._directories, self._image
        return [
            replica
            for replica, directory in zip(partition.replicas, partition.directories, strict=True)
            if replica not in alive
            # The set usually decides; has_online_directory() handles unassigned directories.
            or (directory not in directories[replica] and not has_online_directory(image, replica, directory))
        ]


def alive_brokers(image: MetadataImage) -> list[int]:
    """The ids of the brokers that are not fenced."""
    return [one.id for one in image.brokers.values() if not one.fenced]


def some_controller(alive: Sequence[int], rng: Random) -> int:
    """The broker to which clients send requests for the controller; -1 if there is none.

    Any broker will do, because brokers forward these requests. A random choice spreads the work.
    """
    return rng.choice(alive) if alive else -1


def endpoints_of(
    image: MetadataImage, listener: str, nodes: Iterable[int], make: Callable[..., T]
) -> list[T]:
    """One `make(node_id=, host=, port=, rack=)` for every broker that has this listener."""
    found = []
    for node_id in sorted(nodes):
        broker = image.brokers.get(node_id)
        where = None if broker is None else broker.endpoint(listener)
        if broker is not None and where is not None:
            found.append(make(node_id=node_id, host=where[0], port=where[1], rack=broker.registration.rack))
    return found
