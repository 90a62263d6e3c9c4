"""Which brokers are alive, which of them clients of a listener can reach, and which replicas are offline."""

from collections.abc import Sequence
from random import Random
from typing import Final

from barnabas.controller.leadership import has_online_directory
from barnabas.metadata.image import MetadataImage, PartitionImage


class Reach:
    """Worked out once for the brokers of an image, and asked for every partition."""

    __slots__ = ("_directories", "_image", "alive", "brokers", "listening")

    def __init__(self, image: MetadataImage, listener: str) -> None:
        brokers = image.brokers
        self.brokers: Final = brokers
        # Those that have the listener; and of these the ones that are not fenced.
        self.listening: Final = frozenset(
            one.id for one in brokers.values() if one.endpoint(listener) is not None
        )
        self.alive: Final = frozenset(one for one in self.listening if not brokers[one].fenced)
        self._image: Final = image
        self._directories: Final = {one: frozenset(brokers[one].registration.log_dirs) for one in self.alive}

    def leader(self, partition: PartitionImage) -> int | None:
        """Who leads, if clients can get there."""
        return partition.leader if partition.leader in self.listening else None

    def offline(self, partition: PartitionImage) -> list[int]:
        """Replicas whose broker or directory is out of service, or not to be reached."""
        alive, directories, image = self.alive, self._directories, self._image
        return [
            replica
            for replica, directory in zip(partition.replicas, partition.directories, strict=True)
            if replica not in alive
            # Mostly the first look is enough; the rule has exceptions for directories that nobody named.
            or (directory not in directories[replica] and not has_online_directory(image, replica, directory))
        ]


def alive_brokers(image: MetadataImage) -> list[int]:
    """Those that are not fenced."""
    return [one.id for one in image.brokers.values() if not one.fenced]


def some_controller(alive: Sequence[int], rng: Random) -> int:
    """Where clients send what the controller has to decide; -1 if there is nobody.

    Any broker will do, because brokers pass it on. It is not always the same, so that they share the work.
    """
    return rng.choice(alive) if alive else -1
